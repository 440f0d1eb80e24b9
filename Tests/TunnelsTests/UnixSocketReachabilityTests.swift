import Glibc
import Model
import SystemIO
import TestSupport
import Testing

@testable import Tunnels

/// Unix sockets of a broker that runs as another user than the user who asks.
@Suite(.scratchFolder) struct UnixSocketReachabilityTests {
    private let scratch = ScratchFolder.current
    private static let service = UnixSocketReachability(
        brokerUser: 989,
        sharedFolder: "/run/patchbay/tunnels",
        privateFolders: ["/tmp", "/home"]
    )

    private static func refusal(_ path: String, for owner: UInt32, _ places: UnixSocketReachability) -> String {
        do {
            _ = try places.access(to: .unix(path: path), for: owner)
            return "allowed"
        } catch { return error.description }
    }

    @Test func `a service creates a socket for another user in the shared folder only`() throws {
        let local = ListenAddress.unix(path: "/run/patchbay/tunnels/shop")
        #expect(try Self.service.access(to: local, for: 1_000).mode == 0o666)
        #expect(try Self.service.access(to: local, for: 989) == .private)
        #expect(
            Self.refusal("/srv/shop.sock", for: 1_000, Self.service)
                == "unix:/srv/shop.sock cannot be listened on: the broker runs as user 989 and cannot give a socket in "
                + "this folder to user 1000; listen on unix:/run/patchbay/tunnels/shop.sock"
        )
        let other = UnixSocketReachability(brokerUser: 989)
        #expect(
            Self.refusal("/srv/a", for: 1_000, other).hasSuffix(
                "; listen on tcp:0, which only programs of your user can use"
            )
        )
    }

    @Test(arguments: [("/tmp/a", "/tmp"), ("/home/anna/a", "/home")])
    func `a path in a private folder of the service is refused with a path that works`(path: String, folder: String) {
        for owner in [989, 1_000, 0] as [UInt32] {
            #expect(
                Self.refusal(path, for: owner, Self.service)
                    == "unix:\(path) cannot be listened on: the broker runs as a service and has a \(folder) of its own; "
                    + "listen on unix:/run/patchbay/tunnels/a"
            )
        }
    }

    @Test func `root creates a socket for another user in the shared folder only`() throws {
        let root = UnixSocketReachability(brokerUser: 0, sharedFolder: "/run/patchbay/tunnels")
        #expect(try root.access(to: .unix(path: "/run/patchbay/tunnels/a"), for: 1_000).mode == 0o666)
        #expect(try root.access(to: .unix(path: "/srv/a"), for: 0) == .private)
        for path in ["/home/anna/a", "/run/patchbay/tunnels/../a", "/run/patchbay/tunnelsa"] {
            let refusal = Self.refusal(path, for: 1_000, root)
            #expect(refusal.contains("the broker runs as user 0"), "\(refusal)")
            #expect(refusal.contains("; listen on unix:/run/patchbay/tunnels/"), "\(refusal)")
        }
    }

    @Test func `the folders that systemd replaces are found in mountinfo`() {
        let mounts = """
            36 35 0:31 / /proc rw,nosuid - proc proc rw
            512 480 254:1 /tmp/systemd-private-0a1b-patchbayd.service-x/tmp /tmp rw,nosuid - ext4 /dev/vda1 rw
            513 480 0:24 /systemd/inaccessible/dir /home ro,nosuid - tmpfs tmpfs rw
            514 480 254:1 /srv /srv rw - ext4 /dev/vda1 rw
            """

        #expect(UnixSocketReachability.privateFolders(in: mounts) == ["/tmp", "/home"])
    }

    @Test(.needs(.root)) func `the file of a socket gets its group and its mode`() async throws {
        let (path, own) = (scratch.file("a.sock"), scratch.file("b.sock"))
        let listeners = [
            try Listener(on: .unix(path: path), access: UnixSocketAccess(mode: 0o666, group: 1_000)),
            try Listener(on: .unix(path: own)),
        ]

        func facts(_ path: String) -> (UInt32, UInt32) {
            var status = stat()
            lstat(path, &status)
            return (status.st_gid, status.st_mode & 0o777)
        }
        #expect(facts(path) == (1_000, 0o666))
        #expect(facts(own) == (getegid(), 0o600))
        withExtendedLifetime(listeners) {}
    }

    @Test func `a client of another user is refused, although the file lets every user connect`() async throws {
        let listener = try Listener(on: .unix(path: scratch.file("a.sock")))
        let client = try await SocketAddress.unix(path: scratch.file("a.sock")).connect(within: .seconds(5))
        let accepted = try await listener.accept()

        let user = SocketOption.peerUser(of: accepted.number)
        #expect(user == geteuid())
        #expect(ClientOwnerCheck.evaluate(user: user, owner: 4_321) == .passes)
        guard case .refused(let failure) = ClientOwnerCheck.evaluate(user: 4_322, owner: 4_321) else {
            Issue.record("the client is not refused")
            return
        }
        #expect(failure.reason == .foreignUser)
        #expect(ClientOwnerCheck.evaluate(user: 4_321, owner: 4_321) == .passes)
        withExtendedLifetime(client) {}
    }
}
