"""Lab 01: why does each further token take as long as it does?"""

from labkit.lab.lab01.calls import Lab01 as Lab
from labkit.lab.lab01.exercises import EXERCISES
from labkit.lab.lab01.judges import JUDGES

TITLE = "The generation loop"
QUESTION = "Why does each further token take as long as it does?"
__all__ = ["EXERCISES", "JUDGES", "QUESTION", "TITLE", "Lab"]
