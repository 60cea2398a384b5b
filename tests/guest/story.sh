#!/bin/sh
# A volume of three replicas as a block device through ublk, and what must not disturb its users: a replica that dies,
# an engine that is replaced, an engine that is killed. At the end the same data by the other way, and without a driver.
. /lib.sh
SIZE=256MiB
LINK=device:///dev/granary/demo
head -c 32 /dev/urandom | base64 >key
chmod 600 key

for i in 1 2 3; do replica $i; done
[ ! -e /dev/ublk-control ] || fail "the driver is loaded already"
engine first $LINK
[ "$(device)" = /dev/ublkb0 ] || fail "the device is $(device), not a ublk one"
ctl first status | grep -q /dev/ublkb0 || fail "status does not tell the device"
grep -q 'block device by ublk' first.log || fail "the log does not tell the way"
seen "the driver was loaded and the device is $(device)"

queue=/sys/block/ublkb0/queue
for fact in logical_block_size=512 physical_block_size=4096 fua=1 write_cache="write back" discard_granularity=4096 \
    scheduler="[none]" rotational=0 max_hw_sectors_kb=1024; do
    grep -qF "${fact#*=}" "$queue/${fact%%=*}" || fail "${fact%%=*} is $(cat "$queue/${fact%%=*}")"
done
[ "$(blockdev --getsize64 /dev/ublkb0)" = 268435456 ] || fail "the size is wrong"
seen "it has the attributes it should have"

dd if=/dev/urandom of=/tmp/pattern bs=1M count=8 2>/dev/null
dd if=/tmp/pattern of=/dev/ublkb0 bs=1M conv=fsync 2>/dev/null || fail "writing"
cmp -n 8388608 /tmp/pattern /dev/ublkb0 || fail "what was read is not what was written"
blkdiscard -o 0 -l 4194304 /dev/ublkb0 || fail "blkdiscard"
blkdiscard -z -o 4194304 -l 1048576 /dev/ublkb0 || fail "blkdiscard -z"
sync
echo 3 >/proc/sys/vm/drop_caches
cmp -n 5242880 /dev/zero /dev/ublkb0 || fail "what was discarded is not zero"
cmp -n 3145728 /tmp/pattern /dev/ublkb0 5242880 5242880 || fail "more was discarded than was asked for"
seen "writing, discarding and zeroing"

mkfs.ext4 -q /dev/ublkb0 || fail mkfs.ext4
mount /dev/ublkb0 /mnt || fail mount
cp /tmp/pattern /mnt/pattern && sync
rm -rf /mnt/lost+found && fstrim /mnt || fail fstrim
umount /mnt && e2fsck -fn /dev/ublkb0 || fail e2fsck
seen "a file system lives on it"

mount /dev/ublkb0 /mnt || fail mount
# More requests than the queue has room for, until it is told to end.
fio --name=load --filename=/mnt/load --ioengine=libaio --direct=1 --rw=randrw --bs=4k --iodepth=192 --size=8m \
    --time_based --runtime=3600 --verify=crc32c --verify_state_save=0 --verify_fatal=1 --verify_backlog=64 \
    --fsync=100 >fio.log 2>&1 &
load=$!
until_true 30 test -e /mnt/load || fail "the load does not begin"
sleep 2
kill -9 "$(pid replica3)"
until_true 30 grep -q 'replica lost' first.log || fail "the engine does not notice"
kill -0 $load || fail "the load has ended with a replica"
seen "a replica was killed under load"

engine second $LINK --takeover unix:///run/first.sock
wait "$(pid first)" || fail "the first engine ended with $?"
kill -0 $load || fail "the load has ended with the handover"
[ "$(device)" = /dev/ublkb0 ] || fail "the device is $(device) after the handover"
ctl second status | grep -q /dev/ublkb0 || fail "status of the second engine does not tell the device"
seen "a second engine took over under load"
sleep 2

kill -9 "$(pid second)"
wait "$(pid second)"
sleep 1
replica 3
rm -f second.sock
engine third $LINK
grep -q 'going on with the ublk device' third.log || fail "the device was not recovered"
kill -0 $load || fail "the load has ended with the engine"
seen "an engine was killed under load, and the next one went on"

sleep 2
kill -INT $load
wait $load
grep -q 'err= 0' fio.log || fail "the load noticed"
cmp /tmp/pattern /mnt/pattern || fail "the file is not what it was"
umount /mnt && e2fsck -fn /dev/ublkb0 || fail "e2fsck after it all"
kernel_is_content
seen "the load saw none of it: $(grep -E 'read:|write:' fio.log | tr -s ' ' | tr '\n' ' ')"

ctl third expand 320MiB >/dev/null || fail expand
until_true 10 grep -q 'after it was detached' third.log || fail "the log does not say that the size will be seen later"
stop third
nothing_is_left
seen "it stopped and left nothing behind"

engine fourth "$LINK?via=loop"
case $(device) in /dev/loop*) ;; *) fail "the device is $(device), not a loop device" ;; esac
[ "$(blockdev --getsize64 "$(device)")" = 335544320 ] || fail "the loop device has the old size"
mount -o ro "$(device)" /mnt && cmp /tmp/pattern /mnt/pattern || fail "the data is not what it was"
umount /mnt
stop fourth
nothing_is_left
seen "the same data by a loop device over FUSE"

rmmod ublk_drv && rm -rf /lib/modules/*/kernel/drivers/block/ublk_drv.ko || fail rmmod
granary engine --volume demo --key-file key --control unix:///run/fifth.sock --run-dir /run/granary \
    --replica 127.0.0.1:9501 --replica 127.0.0.1:9502 --replica 127.0.0.1:9503 --frontend 'device?via=ublk' \
    >fifth.out 2>fifth.log && fail "it found ublk where there is none"
grep -q 'modprobe ublk_drv' fifth.log || fail "it does not say what to do"
engine sixth $LINK
case $(device) in /dev/loop*) ;; *) fail "the device is $(device), not a loop device" ;; esac
grep -q 'no /dev/ublk-control' sixth.log || fail "the log does not tell why it is a loop device"
stop sixth
nothing_is_left
seen "without the driver it is a loop device, unless ublk was asked for"

for i in 1 2 3; do stop replica$i; done
kernel_is_content
