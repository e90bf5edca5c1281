-- broken "cannot require": only policy files beside this one
require "cjson"
