"""Every way in which a program can end after a call was stopped, each as a program of its own.

``in_one_process``, ``in_other_ways``, ``in_threads_and_tasks`` and most of ``in_children`` need the
environment of the unit tests only and run with them, from ``tests/test_exit_status.py``.
``in_servers``, ``in_retries`` and ``in_pytest`` need other people's packages: ``nox -s exits`` has an
environment for them, runs everything, under coverage too, and prints the table of all rows.
``table.txt`` is the snapshot that each row is compared with:

- status: the exit status of the process that the program was started as;
- reports: how many the package printed to stderr;
- repeated: how many whole reports loggers, workers and frameworks printed in addition, with the error;
- stdout: what the program saw.
"""
