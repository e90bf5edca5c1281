-- broken "the error value is a table": shown without calling anything of it
error({})
