-- broken "the error value is a nil"
error(nil)
