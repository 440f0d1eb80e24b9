import Model
import Samples
import Testing

@testable import Devices

@Suite struct DevToolsSocketTableTests {
    private static let udid = UDID(androidSerial: "4711") ?? .sample

    private func row(_ name: String, flags: String = "00010000") -> String {
        "0000000000000000: 00000002 00000000 \(flags) 0001 01 12345 @\(name)\n"
    }

    private func sockets(_ names: String...) -> [DevToolsSocket] {
        DevToolsSocket.listed(in: Array(names.map { row($0) }.joined().utf8))
    }

    private func seen(_ events: [SightingEvent]) -> [Sighting] {
        events.compactMap { if case .seen(let sighting) = $0 { sighting } else { nil } }
    }

    @Test func `only listening DevTools sockets count, each once`() {
        let rows = [
            row("webview_devtools_remote_4711"), row("webview_devtools_remote_4711", flags: "00000000"),
            row("webview_devtools_remote_4711"), row("chrome_devtools_remote"), row("_devtools_remote"),
            row("x_devtools_remote_y"), row("x;y_devtools_remote"), row("other"), "garbage\n", "@x_devtools_remote\n",
        ]

        let found = DevToolsSocket.listed(in: Array(rows.joined().utf8))

        #expect(found.map(\.name.text) == ["chrome_devtools_remote", "webview_devtools_remote_4711"])
        #expect(found.map(\.processID) == [nil, 4_711] && found.map(\.program) == ["chrome", "webview"])
    }

    @Test func `a flood of sockets is bounded`() {
        let rows = (0..<5_000).map { row("x\($0)_devtools_remote") }.joined()

        #expect(DevToolsSocket.listed(in: Array(rows.utf8)).count == DevToolsSocket.limit)
    }

    @Test func `a relaunch replaces the socket of the app and keeps its sighting`() {
        var table = DevToolsSocketTable(of: Self.udid)
        let (old, new) = (sockets("webview_devtools_remote_4711"), sockets("webview_devtools_remote_5000"))
        #expect(table.unknown(among: old) == old)
        let first = seen(table.apply(old, commandLines: [old[0]: Array("com.example.shop\0\0".utf8)]))
        #expect(table.unknown(among: old).isEmpty)

        let second = table.apply(new, commandLines: [new[0]: Array("com.example.shop\0".utf8)])

        #expect(first.map(\.app.text) == ["com.example.shop"] && first.first?.appIsBundleID == true)
        #expect(seen(second).map(\.id) == first.map(\.id) && second.count == 1)
        #expect(seen(second).first?.routes.first?.description.contains("webview_devtools_remote_5000") == true)
        #expect(table.removeAll() == first.map { .lost($0.id) })
    }

    @Test func `two processes of a package differ by their role, and Chrome's socket by its own name`() {
        var table = DevToolsSocketTable(of: Self.udid)
        let all = sockets("webview_devtools_remote_1", "webview_devtools_remote_2", "chrome_devtools_remote")
        let lines = ["1": "com.example.shop", "2": "com.example.shop:web"]
        let commandLines = Dictionary(
            uniqueKeysWithValues: all.compactMap { socket in
                socket.processID.flatMap { lines["\($0)"] }.map { (socket, Array($0.utf8)) }
            }
        )

        let found = seen(table.apply(all, commandLines: commandLines))

        #expect(Set(found.map { "\($0.app)/\($0.role)" }) == ["com.example.shop/", "com.example.shop/web", "chrome/"])
        #expect(found.first { $0.app.text == "chrome" }?.appIsBundleID == false)
    }

    @Test(arguments: ["", "zygote64", "<pre-initialized>", "com.example.shop\n", "a.b:c:d", "a b.c", ".:", "com.é"])
    func `a process without the name of a package is read again`(line: String) {
        var table = DevToolsSocketTable(of: Self.udid)
        let all = sockets("webview_devtools_remote_1")

        let events = table.apply(all, commandLines: [all[0]: Array(line.utf8)])

        #expect(events.isEmpty == (line != "com.example.shop\n") && table.unknown(among: all).isEmpty != events.isEmpty)
    }
}
