/* The same for Objective-C: an SDK's uncaught exceptions and a list of return addresses, as NSException has them. */
#import <Foundation/Foundation.h>
#include "sdk_range.h"

SDK_RANGE_STAMP(meter);

@interface MeterCrash : NSObject
+ (BOOL)isOurs:(NSException *)exception;
@end

@implementation MeterCrash

/* callStackReturnAddresses are return addresses all, the first one, too. */
+ (BOOL)isOurs:(NSException *)exception
{
    const sdk_range meter = SDK_RANGE_OF_STAMP(meter);
    for (NSNumber *address in exception.callStackReturnAddresses)
        if (sdk_range_contains_return(&meter, address.unsignedLongValue))
            return YES;
    return NO;
}

@end
