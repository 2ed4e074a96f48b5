// Booleans, bits, comparisons, choice: op_<name of ScalarFn><types>(arguments).

template <class D>
KILN_DEVICE bool op_not(bool x) {
  return !x;
}
template <class D>
KILN_DEVICE Reg<D> op_bit_not(Reg<D> x) {
  return D::wrap(~static_cast<typename D::Unsigned>(x));
}

template <class D>
KILN_DEVICE bool op_and(bool a, bool b) {
  return a && b;
}
template <class D>
KILN_DEVICE bool op_or(bool a, bool b) {
  return a || b;
}
template <class D>
KILN_DEVICE bool op_xor(bool a, bool b) {
  return a != b;
}
template <class D>
KILN_DEVICE Reg<D> op_bit_and(Reg<D> a, Reg<D> b) {
  return a & b;
}
template <class D>
KILN_DEVICE Reg<D> op_bit_or(Reg<D> a, Reg<D> b) {
  return a | b;
}
template <class D>
KILN_DEVICE Reg<D> op_bit_xor(Reg<D> a, Reg<D> b) {
  return a ^ b;
}
template <class D>
KILN_DEVICE Reg<D> op_shift_left(Reg<D> a, Reg<D> b) {
  return b >= sizeof(a) * 8 ? 0 : D::wrap(a << b);
}
template <class D>
KILN_DEVICE Reg<D> op_shift_right(Reg<D> a, Reg<D> b) {
  return b >= sizeof(a) * 8 ? 0 : a >> b;
}
template <class D>
KILN_DEVICE bool op_equal(Reg<D> a, Reg<D> b) {
  return a == b;
}
template <class D>
KILN_DEVICE bool op_less(Reg<D> a, Reg<D> b) {
  return a < b;
}
template <class D>
KILN_DEVICE bool op_greater(Reg<D> a, Reg<D> b) {
  return a > b;
}
template <class D>
KILN_DEVICE bool op_less_equal(Reg<D> a, Reg<D> b) {
  return a <= b;
}
template <class D>
KILN_DEVICE bool op_greater_equal(Reg<D> a, Reg<D> b) {
  return a >= b;
}
template <class D>
KILN_DEVICE Reg<D> op_where(bool test, Reg<D> a, Reg<D> b) {
  return test ? a : b;
}
