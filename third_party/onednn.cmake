# Matrix products and convolutions of the host target.
find_package(dnnl REQUIRED GLOBAL)
