# Thin on purpose: each target is `python3 -m labkit <target>`, which also works without make.
PYTHON ?= python3

.PHONY: help setup lab labs test quick lint size
help:
	@$(PYTHON) -m labkit --help
setup lab labs test quick lint size:
	@$(PYTHON) -m labkit $@
