import Model
import Testing

@testable import Devices

/// Which line of a phone's log is bound to which port.
@Suite struct AppPortTableTests {
    private static let token = String(repeating: "0123456789abcdef", count: 4)
    private static let other = String(repeating: "fedcba9876543210", count: 4)

    private func line(port: UInt16, token: String = token, user: UInt32 = 10_234, process: UInt32 = 77) throws
        -> LogLine
    {
        let url = "http://127.0.0.1:\(port)/?appreveal_session_token=\(token)"
        return try #require(LogLine(Array("11-26 10:00:00.000 \(user) \(process) \(process) I AppReveal: \(url)".utf8)))
    }

    private func sockets(_ users: [UInt16: UInt32], _ processes: [UInt32: UInt32] = [77: 10_234]) -> PhoneSockets {
        let rows = users.map { port, user in
            let digits = String(port, radix: 16).uppercased()
            let address = "0100007F:\(String(repeating: "0", count: 4 - digits.count))\(digits)"
            return "0: \(address) 00000000:0000 0A 0:0 0:0 0 \(user) 0 1"
        }
        let text = rows + processes.map { "process \($0.value) /proc/\($0.key)" }
        return PhoneSockets(Array(text.joined(separator: "\n").utf8))
    }

    private func apply(_ sockets: PhoneSockets, to table: inout AppPortTable) {
        table.apply(sockets, wanted: table.wantedProcesses)
    }

    /// `#expect` cannot call mutating functions.
    private func expectNews(_ isNews: Bool, _ expected: Bool = true, at location: SourceLocation = #_sourceLocation) {
        #expect(isNews == expected, sourceLocation: location)
    }

    @Test func `a line of the port's owner gives its token`() throws {
        var table = AppPortTable()
        try expectNews(table.read(line(port: 5_000)))
        apply(sockets([5_000: 10_234, 6_000: 10_999]), to: &table)

        #expect(table.ports.map(\.port) == [5_000])
        #expect(table.ports.first?.announcement?.reveal() == Self.token)
    }

    @Test func `a line about the port of another app gives nothing`() throws {
        var table = AppPortTable()
        try expectNews(table.read(line(port: 5_000, user: 10_666, process: 88)))
        apply(sockets([5_000: 10_234], [77: 10_234, 88: 10_666]), to: &table)

        #expect(table.ports.isEmpty)
        #expect(table.pause != nil, "the app may not listen yet")
    }

    @Test func `another app does not replace the token of a port`() throws {
        var table = AppPortTable()
        try expectNews(table.read(line(port: 5_000)))
        try expectNews(table.read(line(port: 5_000, token: Self.other, user: 10_666, process: 88)))
        apply(sockets([5_000: 10_234], [77: 10_234, 88: 10_666]), to: &table)

        #expect(table.ports.map { $0.announcement?.reveal() } == [Self.token])
    }

    @Test func `a line of a process that has ended gives nothing`() throws {
        var table = AppPortTable()
        try expectNews(table.read(line(port: 5_000)))
        apply(sockets([5_000: 10_234], [:]), to: &table)
        #expect(table.ports.isEmpty)

        try expectNews(table.read(line(port: 5_000)))
        apply(sockets([5_000: 10_234], [77: 10_666]), to: &table)
        #expect(table.ports.isEmpty, "the number of the process has another user")
    }

    @Test(arguments: [UInt32(0), 1_000, 2_000, 100_000, 101_000])
    func `lines and ports of the system are ignored`(user: UInt32) throws {
        var table = AppPortTable()
        try expectNews(table.read(line(port: 5_000, user: user)), false)
        expectNews(table.set(processes: [77]))
        apply(sockets([5_000: user], [77: user]), to: &table)

        #expect(table.ports.isEmpty)
    }

    @Test func `the newest line of a port counts, and a repeated one is no news`() throws {
        var table = AppPortTable()
        try expectNews(table.read(line(port: 5_000)))
        try expectNews(table.read(line(port: 5_000)), false)
        try expectNews(table.read(line(port: 5_000, token: Self.other, process: 78)))
        apply(sockets([5_000: 10_234], [77: 10_234, 78: 10_234]), to: &table)

        #expect(table.ports.map { $0.announcement?.reveal() } == [Self.other])
    }

    @Test func `an app that listens later is waited for, for some time`() throws {
        var table = AppPortTable()
        apply(sockets([:]), to: &table)
        #expect(table.pause == nil)
        try expectNews(table.read(line(port: 5_000)))
        for _ in 1..<AppPortTable.attempts {
            apply(sockets([:]), to: &table)
            #expect(table.pause != nil)
        }
        apply(sockets([:]), to: &table)
        #expect(table.pause == nil)
        apply(sockets([5_000: 10_234]), to: &table)
        #expect(table.ports.isEmpty, "the line is too old")
    }

    @Test func `the ports of debuggable apps need no line`() throws {
        var table = AppPortTable()
        expectNews(table.set(processes: [77]))
        expectNews(table.set(processes: [77]), false)
        apply(sockets([5_000: 10_234, 5_001: 10_999]), to: &table)
        #expect(table.ports == [PhonePort(port: 5_000, user: 10_234)])

        expectNews(table.set(processes: []))
        apply(sockets([5_000: 10_234]), to: &table)
        #expect(table.ports.isEmpty)
    }

    @Test func `a flood of lines keeps few, and none of another app is lost`() throws {
        var table = AppPortTable()
        try expectNews(table.read(line(port: 4_999)))
        for port in UInt16(5_000)..<6_000 { _ = table.read(try line(port: port, user: 10_666, process: 88)) }
        for user in UInt32(20_000)..<20_100 { _ = table.read(try line(port: 6_000, user: user, process: user)) }
        var users = Dictionary(uniqueKeysWithValues: (UInt16(5_000)..<6_000).map { ($0, UInt32(10_666)) })
        users[4_999] = 10_234
        #expect(table.wantedProcesses.count <= AppPortTable.announcingLimit * AppPortTable.limitOfUser)
        apply(sockets(users, [77: 10_234, 88: 10_666]), to: &table)

        #expect(table.ports.count == 1 + AppPortTable.limitOfUser)
        #expect(table.ports.first?.announcement?.reveal() == Self.token)
    }

    @Test func `a package is named once, and none is guessed`() throws {
        var table = AppPortTable()
        expectNews(table.set(processes: [77]))
        apply(sockets([5_000: 10_234]), to: &table)
        #expect(table.usersWithoutPackage == [10_234])
        table.set(package: SanitizedText("com.example.shop"), of: 10_234)
        #expect(table.usersWithoutPackage.isEmpty)
        #expect(table.ports.map(\.app) == [SanitizedText("com.example.shop")])

        table.set(package: nil, of: 10_234)
        #expect(table.usersWithoutPackage.isEmpty && table.ports.map(\.app) == [nil])
    }

    @Test(arguments: [
        ("package:com.example.shop uid:10234\n", "com.example.shop"),
        ("package:com.example.shop uid:10234,1010234\r\n", "com.example.shop"),
        ("package:com.example.shop uid:10235\n", nil), ("package:a uid:10234\npackage:b uid:10234\n", nil),
        ("package:com.example/../x uid:10234\n", nil), ("Unknown option: --uid\n", nil), ("", nil),
    ])
    func `the name of a package is that of its user`(output: String, name: String?) {
        #expect(AppPortTable.package(in: Array(output.utf8), of: 10_234)?.text == name)
        #expect(AppPortTable.packageCommand(of: 1_010_234) == "cmd package list packages --user 10 --uid 1010234")
    }
}
