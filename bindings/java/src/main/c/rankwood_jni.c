/* The functions of rankwood.h for org.rankwood.Jni; pointers are longs. */
#include <jni.h>
#include <rankwood.h>
#include <stddef.h>
#include <string.h>

/* Java writes rw_batch by itself: see Handle.Workspace.score. */
_Static_assert(sizeof(void*) == 8 && sizeof(rw_batch) == 88 && offsetof(rw_batch, values) == 16 &&
                   offsetof(rw_batch, query_offsets) == 56 && offsetof(rw_batch, trees) == 80,
               "Java has another rw_batch");

#define FUNCTION(type, name, ...) JNIEXPORT type JNICALL Java_org_rankwood_Jni_##name(JNIEnv* env, __VA_ARGS__)
#define POINTER(value) ((void*)(intptr_t)(value))
#define LONG(pointer) ((jlong)(intptr_t)(pointer))
#define UNUSED (void)env, (void)self

FUNCTION(jbyteArray, bytes, jclass self, jlong text) {
  (void)self;
  const jsize length = (jsize)strlen(POINTER(text));
  jbyteArray array = (*env)->NewByteArray(env, length);
  if (array) (*env)->SetByteArrayRegion(env, array, 0, length, POINTER(text));
  return array; /* null: an exception is on its way */
}

FUNCTION(jlong, address, jobject self, jobject buffer) {
  (void)self;
  return LONG((*env)->GetDirectBufferAddress(env, buffer));
}

FUNCTION(jlong, statusText, jobject self, jint status) {
  UNUSED;
  return LONG(rw_status_text(status));
}

FUNCTION(jlong, version, jobject self) {
  UNUSED;
  return LONG(rw_version());
}

FUNCTION(jint, abiVersion, jobject self) {
  UNUSED;
  return (jint)rw_abi_version();
}

FUNCTION(jlong, instructionSet, jobject self) {
  UNUSED;
  return LONG(rw_instruction_set());
}

FUNCTION(jint, load, jobject self, jlong bytes, jlong size, jlong model, jlong message, jlong message_size) {
  UNUSED;
  return rw_load_memory(POINTER(bytes), (size_t)size, POINTER(model), POINTER(message), (size_t)message_size);
}

FUNCTION(void, free, jobject self, jlong model) {
  UNUSED;
  rw_free(POINTER(model));
}

FUNCTION(jlong, features, jobject self, jlong model) {
  UNUSED;
  return (jlong)rw_n_features(POINTER(model));
}

FUNCTION(jlong, trees, jobject self, jlong model) {
  UNUSED;
  return (jlong)rw_n_trees(POINTER(model));
}

FUNCTION(jlong, leaves, jobject self, jlong model) {
  UNUSED;
  return (jlong)rw_n_leaves(POINTER(model));
}

FUNCTION(jlong, featureName, jobject self, jlong model, jlong feature) {
  UNUSED;
  return LONG(rw_feature_name(POINTER(model), (size_t)feature));
}

FUNCTION(jlong, fingerprint, jobject self, jlong model) {
  UNUSED;
  return LONG(rw_fingerprint(POINTER(model)));
}

FUNCTION(jint, hasEarlyExit, jobject self, jlong model) {
  UNUSED;
  return rw_has_early_exit(POINTER(model));
}

FUNCTION(jint, newWorkspace, jobject self, jlong model, jlong max_query_rows, jlong workspace) {
  UNUSED;
  return rw_workspace_new(POINTER(model), (size_t)max_query_rows, POINTER(workspace));
}

FUNCTION(void, freeWorkspace, jobject self, jlong workspace) {
  UNUSED;
  rw_workspace_free(POINTER(workspace));
}

FUNCTION(jint, score, jobject self, jlong model, jlong batch, jlong workspace) {
  UNUSED;
  return rw_score(POINTER(model), POINTER(batch), POINTER(workspace));
}
