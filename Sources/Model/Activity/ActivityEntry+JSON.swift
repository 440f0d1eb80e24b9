/// The form of entries in the API.
extension ActivityEntry {
    package var json: JSON {
        var object: JSONObject = [
            "id": JSON(id), "at": .string(JSONCoding.text(of: at)), "endpoint": .string(endpoint.text),
            "app": .string(app.text),
        ]
        switch content {
        case .change(let text, let state):
            object["kind"] = "change"
            object["text"] = .string(text)
            object["state"] = .string(state)
        case .call(let call):
            object["kind"] = "call"
            call.add(to: &object)
        }
        return .object(object)
    }

    /// Reads an entry; nil for a JSON value of another form.
    package init?(_ json: JSON) {
        guard let id = json["id"]?.number.flatMap({ UInt64($0.text) }),
            let at = json["at"]?.string.flatMap(JSONCoding.date), let app = json["app"]?.string,
            let endpoint = json["endpoint"]?.string.flatMap({ EndpointID($0) })
        else { return nil }
        let content: Content
        switch json["kind"]?.string {
        case "change": content = .change(text: json["text"]?.string ?? "", state: json["state"]?.string ?? "")
        case "call":
            guard let call = Call(json) else { return nil }
            content = .call(call)
        default: return nil
        }
        self.init(id: id, at: at, endpoint: endpoint, app: SanitizedText(app), content: content)
    }
}

extension ActivityEntry.Call {
    fileprivate func add(to object: inout JSONObject) {
        object["device"] = device.map { .string($0.text) }
        var who: JSONObject = ["name": .string(client.name.text), "kind": .string(client.kind.rawValue)]
        who["grant"] = client.grant.map(JSON.string)
        who["agent"] = client.agent.map { .string($0.text) }
        object["client"] = .object(who)
        object["trace"] = trace.map(JSON.string)
        object["tool"] = .string(tool.text)
        object["arguments"] = .object(arguments)
        object["waitMilliseconds"] = JSON(waitMilliseconds)
        object["durationMilliseconds"] = durationMilliseconds.map { JSON($0) } ?? .null
        object["outcome"] = .string(outcome.rawValue)
        object["result"] = result.map { ["text": .string($0.text), "bytes": JSON($0.bytes)] }
        guard let picture else { return }
        var image: JSONObject = ["bytes": JSON(picture.bytes), "type": .string(picture.type)]
        image["width"] = picture.width.map { JSON($0) }
        image["height"] = picture.height.map { JSON($0) }
        object["picture"] = .object(image)
    }

    fileprivate init?(_ json: JSON) {
        guard let tool = json["tool"]?.string, let client = json["client"].flatMap({ ActivityEntry.Client($0) }),
            let outcome = json["outcome"]?.string.flatMap(ActivityEntry.Outcome.init)
        else { return nil }
        self.init(
            device: json["device"]?.string.flatMap { UDID($0) },
            client: client,
            trace: json["trace"]?.string,
            tool: SanitizedText(tool, limit: 128),
            arguments: json["arguments"]?.object ?? [:],
            waitMilliseconds: json["waitMilliseconds"]?.int ?? 0,
            durationMilliseconds: json["durationMilliseconds"]?.int,
            outcome: outcome,
            result: json["result"]?.object.map {
                ActivityEntry.Result(text: $0["text"]?.string ?? "", bytes: $0["bytes"]?.int ?? 0)
            },
            picture: json["picture"]?.object.map {
                ActivityEntry.Picture(
                    width: $0["width"]?.int,
                    height: $0["height"]?.int,
                    bytes: $0["bytes"]?.int ?? 0,
                    type: $0["type"]?.string ?? ""
                )
            }
        )
    }
}

extension ActivityEntry.Client {
    fileprivate init?(_ json: JSON) {
        guard let name = json["name"]?.string, let kind = json["kind"]?.string.flatMap(Kind.init) else { return nil }
        self.init(
            name: SanitizedText(name),
            kind: kind,
            grant: json["grant"]?.string,
            agent: json["agent"]?.string.map { SanitizedText($0, limit: 128) }
        )
    }
}

extension ActivityPage {
    package var json: JSON {
        [
            "schema": 1, "limit": JSON(limit), "oldest": JSON(oldest), "newest": JSON(newest),
            "revision": JSON(revision), "entries": .array(entries.map(\.json)),
        ]
    }

    /// Reads a page. Entries of a form that a newer broker may send are left out.
    package init?(_ json: JSON) {
        func number(_ name: String) -> UInt64? { json[name]?.number.flatMap { UInt64($0.text) } }
        guard let entries = json["entries"]?.array, let newest = number("newest") else { return nil }
        self.init(
            limit: json["limit"]?.int ?? 0,
            oldest: number("oldest") ?? 0,
            newest: newest,
            revision: number("revision") ?? 0,
            entries: entries.compactMap { ActivityEntry($0) }
        )
    }
}

extension JSON {
    fileprivate init(_ number: some BinaryInteger) { self = .number(JSONNumber(Int(clamping: number))) }
}
