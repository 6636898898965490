set -eu
root=$1
shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
    : > "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir -m 1777 "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
cd "$root"
mkdir -p old-root
pivot_root . old-root
umount -l old-root
rmdir old-root
exec "$@"
