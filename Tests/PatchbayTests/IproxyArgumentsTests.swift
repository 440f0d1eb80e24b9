import Testing

@testable import patchbay

@Suite struct IproxyArgumentsTests {
    private func read(_ line: String) throws -> IproxyArguments {
        let request = try IproxyArguments.read(line.split(separator: " ").map(String.init))
        guard case .forward(let arguments) = request else { throw CLIError(status: .error, message: "\(request)") }
        return arguments
    }

    @Test func `any number of pairs is parsed in order`() throws {
        let line = (1...24).map { "\(14_200 + $0):\($0)" }.joined(separator: " ")

        let pairs = try read(line).pairs

        #expect(pairs.count == 24)
        #expect(pairs.first == .init(local: 14_201, device: 1))
        #expect(pairs.last == .init(local: 14_224, device: 24))
    }

    @Test func `the legacy form is two ports and an optional UDID`() throws {
        #expect(try read("2222 22").pairs == [.init(local: 2222, device: 22)])
        #expect(try read("2222 22").udid == nil)
        #expect(try read("2222 22 00008101").udid == "00008101")
        #expect(try read("-u 00008101 2222 22").udid == "00008101")
    }

    @Test(arguments: [
        "-u ABCD -n -d -s 127.0.0.2 1:2", "-nduABCD -s127.0.0.2 1:2",
        "1:2 --udid ABCD --network --debug --source 127.0.0.2",
        "--udid=ABCD --source=127.0.0.2 -dn 1:2", "--ud ABCD --net --deb --so 127.0.0.2 -- 1:2",
    ])
    func `options are parsed like getopt`(line: String) throws {
        let read = try read(line)

        #expect(read.udid == "ABCD")
        #expect(read.takesNetwork && !read.takesUSB)
        #expect(read.debugLevel == 1)
        #expect(read.source == "127.0.0.2")
        #expect(read.pairs == [.init(local: 1, device: 2)])
    }

    @Test(arguments: ["-h", "--help", "-dh", "1:2 --he"])
    func `the help option is recognized at any position`(line: String) throws {
        #expect(try IproxyArguments.read(line.split(separator: " ").map(String.init)) == .help)
    }

    @Test func `the version options print the version`() throws {
        #expect(try IproxyArguments.read(["-v"]) == .version)
        #expect(try IproxyArguments.read(["--version"]) == .version)
    }

    @Test(arguments: ["", "-u", "-q 1:2", "--nonsense 1:2", "--network=1 1:2", "-d", "-u A 1 2 B"])
    func `an invalid command line exits with 2, like iproxy`(line: String) {
        let error = #expect(throws: CLIError.self) { try read(line) }

        #expect(error?.exitCode == 2)
    }

    @Test(arguments: [
        "0:22", "70000:22", "2222:0", "2222:70000", "x:22", "2222", "2222:22:33", "2222 x", ":", "1:2 1:3", "+1:2",
    ])
    func `an invalid port exits with 234, like iproxy, and does not wrap around`(line: String) {
        let error = #expect(throws: CLIError.self) { try read(line) }

        #expect(error?.exitCode == 234)
    }

    @Test func `an empty UDID or source address is rejected`() {
        #expect(throws: CLIError.self) { try IproxyArguments.read(["-u", "", "1:2"]) }
        #expect(throws: CLIError.self) { try IproxyArguments.read(["--source=", "1:2"]) }
    }

    @Test func `two additional options lift the protections of a tunnel`() throws {
        let line = try read("--allow-browsers 1:2 --allow-any-user")

        #expect(line.allowAnyUser && line.allowBrowsers)
        #expect(try !read("1:2").allowAnyUser && !read("1:2").allowBrowsers)
    }

    @Test func `--socket is accepted and does not shadow abbreviations of other options`() throws {
        #expect(try read("--socket /x 1:2").socket == "/x")
        #expect(try read("--socket=/x --so 127.0.0.1 1:2").source == "127.0.0.1")
    }
}
