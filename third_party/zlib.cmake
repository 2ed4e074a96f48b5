# Deflated members of .npz files.
find_package(ZLIB REQUIRED GLOBAL)
