/* A library that calls a function of whatever defines it first (imports_test.cpp). */
int osc_test_answer(void);
int osc_test_ask(void);
int osc_test_ask(void) {
    return osc_test_answer();
}
