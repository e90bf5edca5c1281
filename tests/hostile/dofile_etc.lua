-- broken "dofile is not available"
dofile("/etc/passwd")
