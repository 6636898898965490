set -eu
root=$1
shift
mount --bind "$root" "$root"
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
    : > "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
exec chroot --userspec=1000:1000 --groups= "$root" "$@"
