/* Prints where the members of rw_batch lie, and the constants of the header. */
#include <stddef.h>
#include <stdio.h>

#include "rankwood.h"

#define SHOW(member) printf("%s %lu\n", #member, (unsigned long)offsetof(rw_batch, member))

int main(void) {
  printf("sizeof %lu\n", (unsigned long)sizeof(rw_batch));
  SHOW(size);
  SHOW(type);
  SHOW(flags);
  SHOW(reserved);
  SHOW(values);
  SHOW(n_rows);
  SHOW(n_features);
  SHOW(row_stride);
  SHOW(feature_stride);
  SHOW(query_offsets);
  SHOW(n_queries);
  SHOW(scores);
  SHOW(trees);
  printf("RW_ABI_VERSION %d\n", RW_ABI_VERSION);
  printf("rw_abi_version %lu\n", (unsigned long)rw_abi_version());
  return 0;
}
