"""Makes the project's virtual environment: `python3 -m tools.setup_venv`, or `make setup`."""
