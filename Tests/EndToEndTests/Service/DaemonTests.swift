import FoundationEssentials
import Rig
import Testing

@Suite(.needs(.python)) struct DaemonTests {
    @Test func `SIGTERM ends the daemon within a second, open event streams included`() async throws {
        try await withScratchFolder { scratch in
            let broker = try await RunningBroker(in: scratch)
            let watch = try await broker.start("watch", "--json")
            try await watch.waitForLine("snapshot")

            let start = ContinuousClock.now
            broker.daemon.terminate()
            let status = try await broker.daemon.exitStatus()

            #expect(status == .exited(0), "\(broker.daemon.story)")
            #expect(ContinuousClock.now - start < .seconds(1))
        }
    }

    @Test func `with nothing of Bonjour or usbmuxd there it starts and says what is missing`() async throws {
        try await withScratchFolder { scratch in
            let broker = try await RunningBroker(in: scratch)

            let status = try await broker.ask("status").joined(separator: "\n")

            #expect(status.contains("bonjour    missing"))
            #expect(status.contains("usb        missing"))
            #expect(status.contains("try:"))
        }
    }

    @Test func `a second daemon on the same socket is refused by name and the first goes on`() async throws {
        try await withScratchFolder { scratch in
            let broker = try await RunningBroker(in: scratch)

            let second = try await Program(
                Executable.built("patchbayd"),
                ["--socket", broker.socket, "--state-dir", "\(scratch.path)/two"],
                in: scratch
            )

            #expect(try await second.exitStatus() == .exited(1))
            #expect(second.story.contains(broker.socket))
            #expect(try await broker.ask("status").joined().contains("patchbayd"))
        }
    }

    @Test func `a wrong configuration ends with 78 and names file and key`() async throws {
        try await withScratchFolder { scratch in
            let file = "\(scratch.path)/bad.toml"
            try "[tunnels]\nmax_conections = 3\n".write(toFile: file, atomically: true, encoding: .utf8)

            let daemon = try await Program(Executable.built("patchbayd"), ["--config", file], in: scratch)

            #expect(try await daemon.exitStatus() == .exited(78))
            #expect(daemon.story.contains("bad.toml"))
            #expect(daemon.story.contains("tunnels.max_conections"))
        }
    }

    @Test func `readiness is told to systemd when the door is open, and the watchdog is fed`() async throws {
        try await withScratchFolder { scratch in
            let notify = "\(scratch.path)/notify"
            let systemd = try await Program(
                "python3",
                [
                    "-uc",
                    """
                    import socket,sys
                    s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); s.bind(sys.argv[1]); print("bound")
                    while True: print(s.recv(4096).decode().replace("\\n"," "))
                    """, notify,
                ],
                in: scratch
            )
            try await systemd.waitForLine("bound")

            let daemon = try await Program(
                Executable.built("patchbayd"),
                ["--socket", "\(scratch.path)/p.sock", "--state-dir", "\(scratch.path)/state"],
                in: scratch,
                environment: ["NOTIFY_SOCKET": notify, "WATCHDOG_USEC": "200000"]
            )

            try await systemd.waitForLine("READY=1")
            try await systemd.waitForLine("WATCHDOG=1")
            daemon.terminate()
            try await systemd.waitForLine("STOPPING=1")
        }
    }
}
