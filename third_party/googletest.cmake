find_package(GTest REQUIRED GLOBAL)
