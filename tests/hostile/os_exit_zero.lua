-- broken "os is not available": it would turn a check green
os.exit(0)
