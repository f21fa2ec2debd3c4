// Uses no MPI library, and can load none.
int main(void) {
    return 0;
}
