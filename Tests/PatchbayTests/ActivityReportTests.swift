import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct ActivityReportTests {
    private static let hostile =
        "<img src=x onerror=alert(1)>\"'&\u{202E}gnp.exe\u{1B}[31m javascript:alert(1)"
        + String(repeating: "A", count: 10_000)

    private static func entry(_ id: UInt64, _ tool: String, hasPicture: Bool = false) -> ActivityEntry {
        let client = ActivityEntry.Client(
            name: SanitizedText(hostile),
            kind: .grant,
            grant: "0a1b2c3d",
            agent: SanitizedText(hostile, limit: 128)
        )
        let call = ActivityEntry.Call(
            device: nil,
            client: client,
            tool: SanitizedText(tool, limit: 128),
            arguments: ["text": .string(hostile), "</pre><script>": 1],
            durationMilliseconds: 12,
            outcome: .error,
            result: ActivityEntry.Result(text: "\(hostile)\nsecond line", bytes: 20_000),
            picture: hasPicture ? ActivityEntry.Picture(width: 1, height: 1, bytes: 3, type: "image/png") : nil
        )
        return ActivityEntry(
            id: id,
            at: Date(timeIntervalSince1970: 1_764_000_000 + Double(id)),
            endpoint: "shop-iphone",
            app: SanitizedText(hostile),
            content: .call(call)
        )
    }

    @Test func `the report names the hosts that record the calls of their apps`() throws {
        let hosts = ["shop-iphone.lab3", "shop-iphone.lab2"].map { Endpoint.sample($0) }
        let note =
            "Calls of apps of other hosts are recorded there, also those of these clients: <bdi>lab2</bdi>, <bdi>lab3</bdi>"
        #expect(ActivityReport(entries: [Self.entry(1, "tap")], listed: hosts).html.contains(note))
        #expect(ActivityReport(entries: [], listed: hosts).html.contains(note))
        #expect(!ActivityReport(entries: []).html.contains("other hosts"))

        let id: EndpointID = "shop-iphone.lab2"
        let error = ActivityCommand.isElsewhere(id, try #require(id.host))
        #expect(error.message == "the calls of shop-iphone.lab2 are recorded at the host lab2")
        #expect(error.hint == "on that host, patchbay activity --endpoint shop-iphone")
    }

    @Test func `the report has what its apps announce, without secrets and as text`() throws {
        var shop = Endpoint.sample("shop-iphone")
        shop.txt = TXTRecord(items: ["v=1", "note=<b>\u{202E}", "token=hunter2", "flag"].map { Array($0.utf8) })
        var other = Endpoint.sample("other")
        other.txt = TXTRecord(items: [Array("note=elsewhere".utf8)])
        let html = ActivityReport(entries: [Self.entry(1, "tap")], listed: [shop, other]).html
        let record = "v=1\nnote=&lt;b&gt;\u{FFFD}\ntoken=[removed]\nflag="
        #expect(html.contains("<dt>Announced by <bdi>shop-iphone</bdi></dt><dd><pre>\(record)</pre></dd>"), "\(html)")
        #expect(!html.contains("elsewhere"))
    }

    @Test func `hostile names stay text, and the page can load nothing`() throws {
        var report = ActivityReport(entries: [Self.entry(1, Self.hostile), Self.entry(2, "tap")])
        report.add([1, 2, 3], type: "image/png\" onload=\"x", of: 2)

        let html = report.html

        let tags = html.matches(of: #/<([a-z!]+)[^>]*>/#).map { String($0.1) }
        let known: Set = [
            "!doctype", "html", "head", "meta", "title", "style", "body", "h", "dl", "dt", "dd", "ol", "li", "div",
            "span",
            "time", "bdi", "pre", "figure", "img", "figcaption", "p", "!",
        ]
        #expect(Set(tags).subtracting(known).isEmpty, "\(Set(tags).subtracting(known))")
        #expect(html.matches(of: #/<img /#).count == 1)
        #expect(!html.contains("onload=\"") && !html.contains("<script") && !html.contains("href"))
        #expect(!html.contains("\u{202E}") && !html.contains("\u{1B}"))
        #expect(html.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;\u{FFFD}"))
        #expect(
            html.contains(
                "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
            )
        )
    }

    /// Unicode joins these letters with the sign behind them to one Character, and the last one with the sign before it.
    @Test(arguments: ["\u{0D4E}", "\u{111C2}", "\u{1193F}", "\u{0301}", "\u{0600}"])
    func `a letter that joins a sign does not hide the sign`(_ joining: String) {
        for sign in ["<", ">", "&", "\"", "'"] {
            let html = ActivityReport.escaped("\(joining)\(sign)\(joining)meta")
            #expect(!html.unicodeScalars.dropLast(5).contains(sign.unicodeScalars.first!) || sign == "&", "\(html)")
            #expect(html.unicodeScalars.contains(";"), "\(html)")
        }
    }

    @Test func `a picture stands beside the one before, and the head has the counts`() {
        var report = ActivityReport(entries: [
            Self.entry(1, "screenshot", hasPicture: true), Self.entry(2, "tap"),
            Self.entry(3, "screenshot", hasPicture: true),
        ])
        report.add([1], type: "image/png", of: 1)
        report.add([2], type: "image/jpeg", of: 3)

        let html = report.html

        #expect(html.contains("3 calls, 3 without success, 2 pictures"))
        #expect(html.matches(of: #/src="data:image\/png;base64,AQ=="/#).count == 2)
        #expect(html.contains("before (call 1)") && html.matches(of: #/<figcaption>after/#).count == 1)
        #expect(html.contains("second line"))
    }

    @Test func `an empty report says so`() { #expect(ActivityReport(entries: []).html.contains("<p>No calls.</p>")) }

    @Test func `the table names a running call, a change and the program of a client`() {
        let change = ActivityEntry(
            id: 4,
            at: Date(timeIntervalSince1970: 0),
            endpoint: "shop-iphone",
            app: SanitizedText("Shop"),
            content: .change(text: "offline -> online", state: "online")
        )
        let text = ActivityPrinter.table(of: [Self.entry(1, "tap"), change]).text(width: nil, isColoured: false)

        #expect(text.contains("TIME") && text.contains("shop-iphone") && text.contains("offline -> online"))
        #expect(text.contains("12") && text.contains("error") && !text.contains("\u{1B}"))
    }
}
