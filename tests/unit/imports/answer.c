/* A library that defines the function once more (imports_test.cpp). */
int osc_test_answer(void);
int osc_test_answer(void) {
    return 3;
}
