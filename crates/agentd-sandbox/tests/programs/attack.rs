//! One attack from inside a sandbox. Prints `ok`, or `errno N`.

use std::env;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::mem::size_of;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::time::Duration;

/// Not in every libc.
const FCHMODAT2: libc::c_long = 452;

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut out = io::stdout().lock();
    match attack(&args) {
        Ok(()) => writeln!(out, "ok"),
        Err(error) => match error.raw_os_error() {
            Some(errno) => writeln!(out, "errno {errno}"),
            None => writeln!(out, "error {error}"),
        },
    }
}

fn attack(args: &[&str]) -> io::Result<()> {
    match args {
        ["syscall", number, rest @ ..] => {
            let mut arguments = [0; 6];
            for (to, from) in arguments.iter_mut().zip(rest) {
                *to = self::number(from)?;
            }
            syscall(self::number(number)?, arguments)
        }
        // A fork if it succeeds: the child says nothing.
        ["clone", flags] => {
            let flags = self::number(flags)? | libc::c_long::from(libc::SIGCHLD);
            syscall(libc::SYS_clone, [flags, 0, 0, 0, 0, 0])
        }
        ["unix", path] => UnixStream::connect(path).map(drop),
        ["abstract", name] => {
            let address = SocketAddr::from_abstract_name(name)?;
            UnixStream::connect_addr(&address).map(drop)
        }
        ["datagram", path] => {
            let (ours, _theirs) = UnixDatagram::pair()?;
            ours.send_to(b"out", path).map(drop)
        }
        ["listen", path] => {
            let listener = std::os::unix::net::UnixListener::bind(path)?;
            UnixStream::connect(path)?;
            listener.accept().map(drop)
        }
        ["tcp", address] => TcpStream::connect(address).map(drop),
        ["udp", address] => UdpSocket::bind("0.0.0.0:0")?
            .send_to(b"out", address)
            .map(drop),
        ["loopback"] => loopback(),
        ["signal", pid, signal] => {
            let (pid, signal) = (number(pid)?, number(signal)?);
            syscall(libc::SYS_kill, [pid, signal, 0, 0, 0, 0])
        }
        ["write", path, text] => {
            let mut file = fs::OpenOptions::new().write(true).open(path)?;
            file.write_all(text.as_bytes())
        }
        ["read", path] => fs::File::open(path)?.read(&mut [0; 16]).map(drop),
        ["device", path, kind, major, minor] => {
            let path = std::ffi::CString::new(*path)?;
            let device = libc::makedev(number(major)? as u32, number(minor)? as u32);
            let mode = if *kind == "b" {
                libc::S_IFBLK
            } else {
                libc::S_IFCHR
            };
            #[expect(unsafe_code, reason = "mknod")]
            // SAFETY: the path is valid for the call.
            let made = unsafe { libc::mknod(path.as_ptr(), mode | 0o666, device) };
            check(made.into())
        }
        // Makes a file with a mode, or changes the mode of one.
        ["mode", call, path, mode] => give_mode(call, path, number(mode)?),
        ["setuid", user] => {
            let user = number(user)?;
            syscall(libc::SYS_setuid, [user, 0, 0, 0, 0, 0])
        }
        ["keyboard"] => {
            let byte = c"x".as_ptr() as libc::c_long;
            syscall(
                libc::SYS_ioctl,
                [0, libc::TIOCSTI as libc::c_long, byte, 0, 0, 0],
            )
        }
        // The kernel checks the size first, so EINVAL is what a refusal must not look like.
        ["io-uring"] => {
            let parameters = [0_u64; 15];
            let at = parameters.as_ptr() as libc::c_long;
            syscall(libc::SYS_io_uring_setup, [4, at, 0, 0, 0, 0])
        }
        ["clone3"] => {
            let arguments = [
                libc::CLONE_NEWUSER as u64,
                0,
                0,
                0,
                libc::SIGCHLD as u64,
                0,
                0,
                0,
            ];
            let at = arguments.as_ptr() as libc::c_long;
            let size = size_of::<[u64; 8]>() as libc::c_long;
            syscall(libc::SYS_clone3, [at, size, 0, 0, 0, 0])
        }
        ["mount", target] => {
            let target = std::ffi::CString::new(*target)?;
            let (fs, target) = (c"tmpfs".as_ptr(), target.as_ptr());
            let (fs, target) = (fs as libc::c_long, target as libc::c_long);
            syscall(libc::SYS_mount, [fs, target, fs, 0, 0, 0])
        }
        ["unmount", target] => {
            let target = std::ffi::CString::new(*target)?;
            let flags = libc::c_long::from(libc::MNT_DETACH);
            syscall(
                libc::SYS_umount2,
                [target.as_ptr() as libc::c_long, flags, 0, 0, 0, 0],
            )
        }
        _ => Err(io::Error::other("no such attack")),
    }
}

fn give_mode(call: &str, path: &str, mode: libc::c_long) -> io::Result<()> {
    let dir = std::path::Path::new(path).parent();
    let dir = dir.map(|dir| dir.as_os_str().as_encoded_bytes());
    let dir = std::ffi::CString::new(dir.unwrap_or_default())?;
    let file = std::ffi::CString::new(path)?;
    let (dir, at) = (dir.as_ptr() as libc::c_long, file.as_ptr() as libc::c_long);
    let cwd = libc::c_long::from(libc::AT_FDCWD);
    let flags = libc::c_long::from(libc::O_CREAT | libc::O_WRONLY);
    match call {
        "openat" => syscall(libc::SYS_openat, [cwd, at, flags, mode, 0, 0]),
        "tmpfile" => {
            let flags = libc::c_long::from(libc::O_TMPFILE | libc::O_WRONLY);
            syscall(libc::SYS_openat, [cwd, dir, flags, mode, 0, 0])
        }
        "openat2" => {
            let how = [flags as u64, mode as u64, 0];
            let how_at = how.as_ptr() as libc::c_long;
            let size = size_of::<[u64; 3]>() as libc::c_long;
            syscall(libc::SYS_openat2, [cwd, at, how_at, size, 0, 0])
        }
        "mknodat" => {
            let mode = mode | libc::c_long::from(libc::S_IFREG);
            syscall(libc::SYS_mknodat, [cwd, at, mode, 0, 0, 0])
        }
        "fchmodat" | "fchmodat2" => {
            fs::write(path, "")?;
            let number = if call == "fchmodat" {
                libc::SYS_fchmodat
            } else {
                FCHMODAT2
            };
            syscall(number, [cwd, at, mode, 0, 0, 0])
        }
        _ => Err(io::Error::other("no such call")),
    }
}

fn number(text: &str) -> io::Result<libc::c_long> {
    text.parse().map_err(io::Error::other)
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn syscall(number: libc::c_long, args: [libc::c_long; 6]) -> io::Result<()> {
    let [a, b, c, d, e, f] = args;
    let before = std::process::id();
    #[expect(unsafe_code, reason = "an attack is a system call")]
    // SAFETY: the tests pass numbers, or pointers to memory that lives until the call returns.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if std::process::id() != before {
        std::process::exit(0);
    }
    check(result)
}

/// A server and its client, both in here.
fn loopback() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    client.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (mut server, _) = listener.accept()?;
    server.write_all(b"hello")?;
    let mut text = [0; 5];
    client.read_exact(&mut text)
}
