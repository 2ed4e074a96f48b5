# Command lines of apps/; header-only.
find_package(CLI11 REQUIRED GLOBAL)
