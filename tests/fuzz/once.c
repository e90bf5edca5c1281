/* SPDX-License-Identifier: Apache-2.0 */
/*
** once.c: runs a fuzz target without libFuzzer, so that the tests notice where it is no longer what the engine is:
**   NAME_test FILE…   each file as an input, and then inputs of chance, the same each time
*/
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 12, OF_CHANCE = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
  static uint8_t input[MOST];
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    if (!file) {
      perror(argv[i]);
      return EXIT_FAILURE;
    }
    size_t size = fread(input, 1, sizeof input, file);
    fclose(file);
    printf("%s: %zu bytes\n", argv[i], size);
    fflush(stdout);
    LLVMFuzzerTestOneInput(input, size);
  }
  uint32_t state = 1;
  for (int i = 0; i < OF_CHANCE; i++) {
    size_t size = 0;
    for (size_t length = 1 + (state >> 8) % 200; size < length; size++) {
      state = state * 1664525u + 1013904223u;
      input[size] = (uint8_t)(state >> 24);
    }
    if (i % 4 < 2) input[0] = i % 4 == 0 ? 'b' : 'c';
    LLVMFuzzerTestOneInput(input, size);
  }
  printf("%d inputs of chance\n", OF_CHANCE);
  return EXIT_SUCCESS;
}
