import FoundationEssentials
import Model

/// The file of `patchbay activity --html`: one page without scripts and without references to other files.
///
/// Every text of an app or a client is escaped, and shown without control characters. The page forbids everything but its
/// own style and its pictures, so a mistake here could not load or run anything.
struct ActivityReport {
    /// The width of pictures in pixels.
    static let pictureWidth = 400

    private struct Picture {
        let base64: String
        let type: String
    }

    private let entries: [ActivityEntry]
    private var pictures: [UInt64: Picture] = [:]

    /// The hosts with apps whose calls are recorded there.
    private let otherHosts: Set<HostName>
    /// The TXT records of the apps of the entries.
    private let records: [(id: EndpointID, record: TXTRecord)]

    /// - Parameters:
    ///   - entries: The calls and changes, oldest first.
    ///   - listed: The endpoints of the list now. Those of other hosts are named as such, and of those with entries the TXT
    ///     record is shown.
    init(entries: [ActivityEntry], listed: [Endpoint] = []) {
        self.entries = entries
        otherHosts = Set(listed.compactMap(\.id.host))
        let named = Set(entries.map(\.endpoint))
        records = listed.filter { named.contains($0.id) && !$0.txt.entries.isEmpty }.map { ($0.id, $0.txt) }
    }

    /// Adds the picture of an entry.
    mutating func add(_ bytes: [UInt8], type: String, of entry: UInt64) {
        pictures[entry] = Picture(base64: Data(bytes).base64EncodedString(), type: type)
    }

    /// The page.
    var html: String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Patchbay activity</title>
        <style>
        \(Self.style)
        </style>
        </head>
        <body>
        <h1>Patchbay activity</h1>
        \(header)
        <ol>
        \(rows)
        </ol>
        </body>
        </html>

        """
    }

    private static let style = """
        :root { color-scheme: light dark; --line: #8884; --bad: #b3261e; --good: #1b6e3c; }
        @media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #7bd89b; } }
        body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
        h1 { font-size: 1.4rem; }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
        dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
        ol { list-style: none; margin: 2rem 0 0; padding: 0; }
        li { border-top: 1px solid var(--line); padding: .7rem 0; break-inside: avoid; }
        .head { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; }
        .head > * { overflow-wrap: anywhere; }
        time, .note { opacity: .7; font-variant-numeric: tabular-nums; }
        .tool { font: 600 1rem ui-monospace, monospace; }
        .ok { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
        pre { font: 13px/1.4 ui-monospace, monospace; margin: .4rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
        .pictures { display: flex; flex-wrap: wrap; gap: 1rem; margin-top: .6rem; }
        figure { margin: 0; max-width: 100%; } figcaption { opacity: .7; font-size: .85rem; }
        img { display: block; max-width: 100%; height: auto; border: 1px solid var(--line); }
        """

    private var calls: [ActivityEntry.Call] { entries.compactMap(\.call) }

    private var header: String {
        guard let first = entries.first, let last = entries.last else { return "<p>No calls.</p>" + elsewhere }
        let failures = calls.count { $0.outcome.isFailure }
        let counts =
            "\(Formatting.count(calls.count, "call")), \(failures) without success, "
            + Formatting.count(pictures.count, "picture")
        let clients = Set(calls.map { ActivityPrinter.name(of: $0.client) }).sorted()
        let apps = Set(entries.map { "\($0.app) (\($0.endpoint))" }).sorted()
        let rows =
            [
                ("From", Self.time(first.at)), ("To", Self.time(last.at)), ("Counts", Self.escaped(counts)),
                ("Clients", clients.map(Self.isolated).joined(separator: ", ")),
                ("Apps", apps.map(Self.isolated).joined(separator: ", ")),
            ]
            + records.map {
                ("Announced by \(Self.isolated($0.id.text))", "<pre>\(Self.escaped(Self.text(of: $0.record)))</pre>")
            }
        return "<dl>" + rows.map { "<dt>\($0.0)</dt><dd>\($0.1)</dd>" }.joined() + "</dl>" + elsewhere
    }

    /// The lines of a TXT record, without secrets: `transport=streamable-http`.
    private static func text(of record: TXTRecord) -> String {
        let members = record.entries.map { entry in
            JSONObject.Member(
                name: entry.key,
                value: .string(entry.value.map { String(decoding: $0, as: UTF8.self) } ?? "")
            )
        }
        return SecretRedactor(known: []).arguments(JSONObject(members)).members.map { member in
            "\(member.name)=\(member.value.string ?? "")"
        }.joined(separator: "\n")
    }

    /// The note about calls that went to apps of other hosts.
    private var elsewhere: String {
        guard !otherHosts.isEmpty else { return "" }
        let names = otherHosts.map(\.text).sorted().map(Self.isolated).joined(separator: ", ")
        return
            "<p class=\"note\">Calls of apps of other hosts are recorded there, also those of these clients: \(names)</p>"
    }

    private var rows: String {
        // The last picture of each endpoint, which shows the screen before the next call.
        var last: [EndpointID: UInt64] = [:]
        return entries.map { entry in
            defer { if pictures[entry.id] != nil { last[entry.endpoint] = entry.id } }
            return row(entry, before: last[entry.endpoint])
        }.joined(separator: "\n")
    }

    private func row(_ entry: ActivityEntry, before: UInt64?) -> String {
        let start = "<li id=\"e\(entry.id)\"><div class=\"head\">\(Self.time(entry.at))"
        let app = Self.isolated(entry.endpoint.text)
        guard let call = entry.call else {
            guard case .change(let text, _) = entry.content else { return "" }
            return "\(start)<span>\(app)</span><span>\(Self.isolated(text))</span></div></li>"
        }
        var facts: [String] = []
        if let duration = call.durationMilliseconds { facts.append("\(duration) ms") }
        if call.waitMilliseconds > 0 { facts.append("waited \(call.waitMilliseconds) ms for a lease") }
        let outcome = "<span class=\"\(call.outcome.isFailure ? "bad" : "ok")\">\(call.outcome.rawValue)</span>"
        var html =
            "\(start)<span class=\"tool\">\(Self.isolated(call.tool.text))</span><span>\(app)</span>\(outcome)"
            + "<span class=\"note\">\(facts.joined(separator: ", "))</span>"
            + "<span class=\"note\">by \(Self.isolated(ActivityPrinter.name(of: call.client)))</span></div>"
        if !call.arguments.members.isEmpty {
            html += "<pre>\(Self.escaped(JSON.object(call.arguments).text))</pre>"
        }
        if let result = call.result, !result.text.isEmpty { html += "<pre>\(Self.escaped(result.text))</pre>" }
        return html + figures(entry.id, before: before) + "</li>"
    }

    /// Returns the picture of a call beside the one before.
    private func figures(_ id: UInt64, before: UInt64?) -> String {
        guard let picture = pictures[id] else { return "" }
        var html = ""
        if let before, let earlier = pictures[before] {
            html += Self.figure(earlier, "before (call \(before))", alternative: "The screen before")
        }
        html += Self.figure(picture, before == nil ? "picture" : "after", alternative: "The picture of the call")
        return "<div class=\"pictures\">\(html)</div>"
    }

    private static func figure(_ picture: Picture, _ caption: String, alternative: String) -> String {
        """
        <figure><img width="\(pictureWidth)" alt="\(alternative)" src="data:\(escaped(picture.type));base64,\
        \(picture.base64)"><figcaption>\(caption)</figcaption></figure>
        """
    }

    private static func time(_ date: Date) -> String {
        let text = JSONCoding.text(of: date)
        return "<time datetime=\"\(text)\">\(text.prefix(10)) \(text.dropFirst(11))</time>"
    }

    /// Returns foreign text as HTML that cannot change the direction of the text around it.
    private static func isolated(_ text: String) -> String { "<bdi>\(escaped(text))</bdi>" }

    /// Returns text as HTML, without control and invisible characters. Line breaks stay.
    static func escaped(_ text: String) -> String {
        // A Character may be a letter with a sign that joins it (U+0D4E before `<`), so this replaces scalars.
        Console.plain(text).unicodeScalars.reduce(into: "") { html, scalar in
            switch scalar {
            case "&": html += "&amp;"
            case "<": html += "&lt;"
            case ">": html += "&gt;"
            case "\"": html += "&quot;"
            case "'": html += "&#39;"
            default: html.unicodeScalars.append(scalar)
            }
        }
    }
}
