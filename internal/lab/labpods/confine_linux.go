package labpods

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine takes from this thread, and so from all processes that it starts, what they are not to have. The thread stays
// the goroutine's and ends with it.
func confine(by confinement, log func(string, ...any)) error {
	runtime.LockOSThread()
	if by.noCapabilities {
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	if by.noNewPrivileges || by.readOnlyRoot { // without it only root may confine itself further
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("forbidding new privileges: %w", err)
		}
	}
	if !by.readOnlyRoot {
		return nil
	}
	err := readOnlyBut(by.writable)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		log("this kernel has no Landlock, so a pod with a read-only root can write where it likes")
		return nil
	}
	return err
}

// dropCapabilities keeps root's from what is executed next. Who is not root has none, and may not drop any.
func dropCapabilities() error {
	for capability := uintptr(0); ; capability++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); {
		case errors.Is(err, unix.EINVAL): // the kernel has no more
			return nil
		case errors.Is(err, unix.EPERM) && unix.Geteuid() != 0:
			return nil
		case err != nil:
			return fmt.Errorf("dropping capability %d: %w", capability, err)
		}
	}
}

// writes are all ways to change a file system that the first version of Landlock knows. Later versions add what they
// would otherwise allow or forbid everywhere.
const writes = unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
	unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
	unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
	unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
	unix.LANDLOCK_ACCESS_FS_MAKE_SYM

// readOnlyBut makes every file read-only to this thread but those below the folders.
func readOnlyBut(folders []string) error {
	version, _, code := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if code != 0 {
		return fmt.Errorf("asking for Landlock: %w", code)
	}
	access := uint64(writes)
	if version >= 2 {
		access |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		access |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	rules, _, code := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&access)),
		unsafe.Sizeof(access), 0)
	if code != 0 {
		return fmt.Errorf("making a read-only root: %w", code)
	}
	defer func() { _ = unix.Close(int(rules)) }()
	for _, folder := range folders {
		if err := allow(int(rules), folder, access); err != nil {
			return err
		}
	}
	if _, _, code := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); code != 0 {
		return fmt.Errorf("making the root read-only: %w", code)
	}
	return nil
}

// allow adds a folder to the rules.
func allow(rules int, folder string, access uint64) error {
	at, err := unix.Open(folder, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the volume at %s: %w", folder, err)
	}
	defer func() { _ = unix.Close(at) }()
	below := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(at)}
	_, _, code := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&below)), 0, 0, 0)
	if code != 0 {
		return fmt.Errorf("allowing the volume at %s: %w", folder, code)
	}
	return nil
}
