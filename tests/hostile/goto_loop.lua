-- budget: a loop of gotos
::again:: goto again
