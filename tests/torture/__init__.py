"""Attack the store: kill it, fill its disk, cut, flip, merge and mutate its files.

``python -m tests.torture`` runs every trial and prints a row for each as it ends; ``--short`` is the form for
every change (90 seconds), the full form takes most of an hour. The exit status is 0 where every row held.

A row has one of four verdicts:

- *held*: the promise held, and the trial could have shown that it does not;
- *failed*: it did not hold; what was seen stands below the row;
- *proves nothing*: no fault was seen, and none could have been: no line was torn, no writer met another, or
  the same trial passes a careless store that keeps none of the promises;
- *skipped*: this machine cannot run it; the reason stands below the row.

Each family of trials is a module named for what it does to the store. They know the store by ``_store`` (one
recording put and got, and the careless store beside it) and ``_calls`` (a client on a cassette transport and
the server behind it), and by nothing else.
"""
