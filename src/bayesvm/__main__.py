"""``python -m bayesvm``."""

from bayesvm.cli import main

if __name__ == "__main__":
    main()
