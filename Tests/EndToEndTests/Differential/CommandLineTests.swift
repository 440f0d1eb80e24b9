import TestSupport
import Testing

extension Differential {
    /// The output lines and exit status, as a script sees them.
    @Suite(.scratchFolder) struct CommandLineTests {
        private let scratch = ScratchFolder.current

        @Test(arguments: Forwarder.allCases)
        func `an invalid port exits with a message and 234`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let local = try FreePorts.take()[0]
            let lines = [
                "\(local):70000", "70000:22", "\(local):0", "0:22", "\(local):ssh", "ssh:22", "\(local):", ":22",
                "\(local)", "\(local):22:23", "\(local) 70000", "\(local) ssh", "\(local) 0",
            ]
            for line in lines {
                let words = line.split(separator: " ").map(String.init)
                let (status, program) = try await bench.ending(["-u", Phones.one] + words)
                let message = program.transcript.soFar.first { $0.source == .errors }?.text
                forwarder.promises(
                    "wrong port \(line.replacing("\(local)", with: "LOCAL"))",
                    status == .exited(234) && message?.contains("port") == true,
                    seen: status == nil ? "goes on: \(program.output.first ?? "")" : "\(message ?? "no message")",
                    unless: line.contains("70000") ? "a port that is too large loses its upper bits" : nil
                )
            }
        }

        @Test(arguments: Forwarder.allCases)
        func `an invalid command line exits with 2 and no standard output`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture(in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            for words in [[], ["-u"], ["-s"], ["-z"], ["--bogus"], ["-u", "", "1:2"], ["--network=1", "1:2"]] {
                let (status, program) = try await bench.ending(words)

                #expect(status == .exited(2), "\(words)")
                #expect(program.output.isEmpty && !program.transcript.soFar.isEmpty, "\(words)")
            }
        }

        @Test(arguments: Forwarder.allCases)
        func `an address that cannot be bound exits with 247`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let other = try EchoServer(in: scratch)
            let local = try FreePorts.take()[0]
            for words in [
                ["\(other.port):22"], ["\(local):22", "\(other.port):22"], ["-s", "192.0.2.1", "\(local):22"],
                ["-s", "nowhere.invalid", "\(local):22"],
            ] {
                let (status, program) = try await bench.ending(["-u", Phones.one] + words)

                #expect(status == .exited(247), "\(words)")
                #expect(program.output.first?.hasPrefix("Creating listening port") == true)
                #expect(program.transcript.soFar.contains { $0.source == .errors })
            }
        }

        @Test(arguments: Forwarder.allCases)
        func `the lines that scripts wait for are on standard output`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let local = try FreePorts.take(2)
            let program = try await bench.forward(["\(local[0]):22", "\(local[1]):80"])

            #expect(
                program.output == [
                    "Creating listening port \(local[0]) for device port 22",
                    "Creating listening port \(local[1]) for device port 80",
                    "waiting for connection",
                ]
            )
            program.terminate()
            #expect(try await program.exitStatus() == .signalled(15))
        }

        @Test(arguments: Forwarder.allCases)
        func `every form of the command line leads to the phone`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let echo = try EchoServer(in: scratch)
            for form in [
                "LOCAL:PORT", "LOCAL PORT", "-u UDID LOCAL PORT", "-u UDID LOCAL:PORT", "LOCAL:PORT --udid UDID",
                "-l LOCAL:PORT", "-ln LOCAL:PORT", "-d -s 127.0.0.1 LOCAL:PORT",
                "--local --source=127.0.0.1 LOCAL:PORT", "-s localhost LOCAL:PORT", "-uUDID -- LOCAL:PORT",
                "LOCAL PORT UDID",
            ] {
                let local = try FreePorts.take()[0]
                let line = form.replacing("LOCAL", with: "\(local)").replacing("PORT", with: "\(echo.port)")
                let words = line.replacing("UDID", with: Phones.one).split(separator: " ").map(String.init)
                let program = try? await bench.forward(words)
                let echoes = await LoopbackClient.echoes(from: local, within: forwarder.timeLimit)

                forwarder.promises(
                    "iproxy \(form)",
                    echoes,
                    seen: echoes ? "echoes" : "\(program == nil ? "is refused" : "does not echo")",
                    unless: form == "LOCAL PORT UDID" ? "the UDID as a third word was given up after 1.x" : nil
                )
                program?.kill()
            }
        }

        @Test(arguments: Forwarder.allCases)
        func `help and version on standard output match iproxy`(forwarder: Forwarder) async throws {
            let bench = try await ForwarderFixture(forwarder, on: UsbmuxdFixture(in: scratch), in: scratch)
            for words in [["-h"], ["--help"]] {
                let (status, program) = try await bench.ending(words)
                let text = program.output.joined(separator: "\n")

                #expect(status == .exited(0))
                #expect(text.contains("[OPTIONS] LOCAL_PORT:DEVICE_PORT [LOCAL_PORT2:DEVICE_PORT2 ...]"))
                for option in ["udid", "network", "local", "source", "help", "debug", "version"] {
                    #expect(text.contains("  -\(option.first ?? "?"), --\(option) "), "\(option)")
                }
            }
            for words in [["-v"], ["--version"]] {
                let (status, program) = try await bench.ending(words)

                #expect(status == .exited(0))
                #expect(program.output.first?.hasPrefix("iproxy 2.0.2") == true)
            }
        }
    }
}
