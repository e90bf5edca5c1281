-- broken "package is not available"
package.loadlib("libc.so.6", "*")
