/* What Host.java calls. */
#include "kinds.h"
#include <jni.h>

JNIEXPORT jint JNICALL Java_Host_run(JNIEnv *env, jclass host, jstring kind, jstring directory)
{
    (void)host;
    return host_run((*env)->GetStringUTFChars(env, kind, NULL), (*env)->GetStringUTFChars(env, directory, NULL));
}
