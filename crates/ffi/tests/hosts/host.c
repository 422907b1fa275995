/* What Host.java calls. */
#include "backtrail.h"
#include <jni.h>
#include <stdlib.h>
#include <string.h>

JNIEXPORT jint JNICALL Java_Host_install(JNIEnv *env, jclass host, jstring directory)
{
    backtrail_crash_options options;
    (void)host;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.directory = (*env)->GetStringUTFChars(env, directory, NULL);
    return backtrail_crash_install(&options);
}

static int *volatile nowhere = (int *)0x18;

JNIEXPORT void JNICALL Java_Host_fault(JNIEnv *env, jclass host)
{
    (void)env;
    (void)host;
    *nowhere = 1;
}

JNIEXPORT void JNICALL Java_Host_abort(JNIEnv *env, jclass host)
{
    (void)env;
    (void)host;
    abort();
}
