import ArgumentParser
import Glibc
import Model
import Samples
import TestSupport
import Testing

@testable import patchbay

@Suite(.serialized) struct SecretInputTests {
    /// Opens a pseudoterminal and returns the user's end and the program's end.
    private func terminal() throws -> (person: CInt, program: CInt) {
        // Swift does not import posix_openpt(3) and related functions; these are their ioctl_tty(2) calls, TIOCSPTLCK
        // and TIOCGPTN.
        let person = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        var (lock, number): (CInt, CUnsignedInt) = (0, 0)
        try #require(ioctl(person, 0x4004_5431, &lock) == 0 && ioctl(person, 0x8004_5430, &number) == 0)
        let program = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
        try #require(program >= 0)
        return (person, program)
    }

    private func echoes(_ terminal: CInt) -> Bool {
        var mode = termios()
        return tcgetattr(terminal, &mode) == 0 && mode.c_lflag & tcflag_t(ECHO) != 0
    }

    @Test func `secret set says that the running app rejects the secret, or that it was not tried`() throws {
        let id: EndpointID = "shop"
        #expect(SecretSetCommand.text(.accepted, of: id) == "Stored the secret of shop. The app accepts it.")
        #expect(SecretSetCommand.text(.rejected, of: id).contains("but the running app rejects it"))
        #expect(SecretSetCommand.text(.untried, of: id).contains("was not tried"))
        #expect(SecretSetCommand.text(nil, of: id) == "Stored the secret of shop.")
    }

    @Test func `the prompt reads a line without echo and restores the terminal`() async throws {
        let (person, program) = try terminal()
        defer { for end in [person, program] { close(end) } }
        #expect(echoes(program))

        async let answer = BlockingThread.value { PasswordPrompt.line("", from: program, limit: 100) }
        try await eventually("the prompt hides") { !echoes(program) }
        write(person, "geheim\n", 7)

        #expect(await answer == .line(Array("geheim".utf8)))
        #expect(echoes(program))
        var shown = [UInt8](repeating: 0, count: 100)
        let count = read(person, &shown, 100)
        #expect(String(decoding: shown.prefix(max(0, count)), as: UTF8.self).filter { !$0.isNewline }.isEmpty)
    }

    @Test(arguments: [
        ("one\ntwo\n", "one\ntwo\n"), ("one\rtwo", "one\ntwo"), ("\none\n", "\none\n"), ("one\n\n", "one\n\n"),
    ])
    func `the prompt reads all lines of a paste, also an incomplete one`(pasted: String, text: String) async throws {
        let (person, program) = try terminal()
        defer { for end in [person, program] { close(end) } }

        async let answer = BlockingThread.value { PasswordPrompt.line("", from: program, limit: 100) }
        try await eventually("the prompt hides") { !echoes(program) }
        write(person, pasted, pasted.utf8.count)

        #expect(await answer == .line(Array(text.utf8)))
        #expect(echoes(program))
    }

    @Test func `a paste above the limit is read completely and refused`() async throws {
        let (person, program) = try terminal()
        defer { for end in [person, program] { close(end) } }
        let pasted = String(repeating: "123456789\n", count: 30)

        async let answer = BlockingThread.value { PasswordPrompt.line("", from: program, limit: 100) }
        try await eventually("the prompt hides") { !echoes(program) }
        write(person, pasted, pasted.utf8.count)

        #expect(await answer == .tooLong)
        var rest = pollfd(fd: program, events: Int16(POLLIN), revents: 0)
        #expect(poll(&rest, 1, 0) == 0)
    }

    @Test(arguments: [
        ("one\ntwo\n", "onetwo"), ("  one \r\n\ttwo", "onetwo"), ("\n\none", "one"), ("whole\nls", "whole"),
        ("who\nle", "whole"),
    ])
    func `a secret in several lines is joined, and lines behind a complete one are dropped`(
        input: String,
        secret: String
    ) throws {
        let text = try SecretInput.text(in: Self.line(input), command: "patchbay join -") { $0 == "whole" }

        #expect(text == secret)
    }

    @Test func `a terminal hangup returns no input`() async throws {
        let (person, program) = try terminal()
        defer { close(program) }

        async let answer = BlockingThread.value { PasswordPrompt.line("", from: program, limit: 100) }
        try await eventually("the prompt hides") { !echoes(program) }
        close(person)

        #expect(await answer == .nothing)
    }

    private static func line(_ text: String) -> LineReadResult { .line(Array(text.utf8)) }

    @Test(arguments: [
        ("one\ntwo\n", line("one")), ("one", line("one")), ("", .nothing), ("\n", line("")),
        (String(repeating: "x", count: 101), .tooLong),
        (String(repeating: "x", count: 100) + "\n", line(String(repeating: "x", count: 100))),
    ])
    func `one line is read, up to the limit`(input: String, line: LineReadResult) throws {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { close(ends[0]) }
        write(ends[1], input, input.utf8.count)
        close(ends[1])

        #expect(LineReadResult.read(from: ends[0], limit: 100) == line)
    }

    @Test(arguments: [
        (LineReadResult.nothing, "standard input is empty"), (.tooLong, "more than 8192 bytes"),
        (.line([0x70, 0xFF]), "not UTF-8"),
        (.line([0x20, 0x0D]), "is empty"),
    ])
    func `the error for an invalid input does not contain the input`(input: LineReadResult, what: String) {
        let error = #expect(throws: CLIError.self) {
            try SecretInput.text(in: input, command: "patchbay join -") { _ in false }
        }

        #expect(error?.message.contains(what) == true)
        #expect(error?.status == .usage && error?.hint?.hasPrefix("patchbay join -") == true)
    }

    @Test func `printing and dumping a secret does not reveal the secret`() {
        let session = SessionURL(origin: .loopback(1), token: Secret("geheim"))
        var dumped = ""
        dump(session, to: &dumped)

        #expect(!"\(session) \(session.token) \(String(reflecting: session))\(dumped)".contains("geheim"))
        #expect(session.token.reveal() == "geheim")
    }

    @Test func `tokens in error messages are redacted`() {
        let token = "pbi_0a1B2c3D_abcdefghijklmnopqrstuv_012345"

        #expect(Secret.redacted("Unexpected argument '\(token)'") == "Unexpected argument 'pbi_0a1B2c3D_…'")
        #expect(!Secret.redacted("PATCHBAY:1:127.0.0.1:7282::\(token)").contains("abcdefgh"))
        #expect(!Secret.redacted("--token=pbg_0a1B2c3D_\(String(repeating: "s", count: 43))").contains("sss"))
        #expect(Secret.redacted("pbi_short and nothing else") == "pbi_short and nothing else")
    }

    @Test(arguments: [
        ["join", "pbi_0a1B2c3D_abcdefghijklmnopqrstuv_012345"],
        ["join", "-", "PATCHBAY:1:127.0.0.1:7282::abcdefghijkl"],
        ["secret", "set", "shop", "abcdefghijklmnopqrstuv"],

        ["pbi_0a1B2c3D_abcdefghijklmnopqrstuv_012345"], ["revoke", "--pbg_0a1B2c3D_abcdefghijklmnopqrstuv"],
    ])
    func `a secret on the command line is rejected and not repeated`(arguments: [String]) async throws {
        let error = await #expect(throws: (any Error).self) {
            try CommandSuggestion.check(arguments, against: Patchbay.self)
            var command = try Patchbay.parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
        }

        let shown = CLIError(describing: try #require(error), command: "patchbay")
        #expect(shown.status == .usage)
        #expect(!"\(shown)".contains("abcdefghijkl"))
    }

    @Test func `a complete session URL is accepted, and its port identifies the launch`() throws {
        let url = "[AppReveal] Session URL: http://127.0.0.1:49213/?appreveal_session_token=abc123"

        #expect(try SecretSetCommand.pasted(url, command: "").token == "abc123")
        #expect(try SecretSetCommand.pasted(url, command: "").port == 49_213)
        #expect(try SecretSetCommand.pasted("abc123", command: "").token == "abc123")
        for odd in ["two words", "\u{1B}[31m", "geheim\u{E9}"] {
            let error = #expect(throws: CLIError.self) { try SecretSetCommand.pasted(odd, command: "") }
            #expect(error?.message.contains("printable ASCII") == true)
        }
        let long = String(repeating: "x", count: 4_097)
        let error = #expect(throws: CLIError.self) { try SecretSetCommand.pasted(long, command: "") }
        #expect(error?.message.hasSuffix("the input has 4097") == true)
    }
}
