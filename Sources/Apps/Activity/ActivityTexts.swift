import Model

/// The texts of a call as the client and the app sent them, until a reader wants the entry.
///
/// A search for their secrets costs more than all else that the activity does during a call, and most entries are never
/// read. No reader gets these texts: `move` removes the secrets first. They take at most about 20 kB.
struct ActivityTexts: Sendable {
    /// The part of a result that the entry has.
    enum Excerpt: Sendable {
        /// The beginning of the texts, with the size of all in bytes.
        case text(String, bytes: Int)
        /// The structured content of a result without texts.
        case object(JSONObject)
    }

    private static let toolLimit = 128

    /// The tool and the arguments; nil once the entry has them.
    private var call: (tool: String, arguments: JSONObject)?
    var result: Excerpt?
    /// The secrets at the time of the call. One of them may be forgotten when the entry is read.
    private let secrets: [[UInt8]]

    /// The texts of a change, which has none.
    init() { secrets = [] }

    init(_ tool: String, _ arguments: JSONObject, secrets: [[UInt8]]) {
        self.secrets = secrets
        call = (SecretRedactor.excerpt(of: tool, limit: Self.toolLimit), arguments.bounded(secrets))
    }

    var isEmpty: Bool { call == nil && result == nil }

    /// Moves the texts to an entry, without secrets.
    ///
    /// - Parameters:
    ///   - entry: The entry.
    ///   - current: The secrets of now, which are removed too.
    mutating func move(to entry: inout ActivityEntry.Call, without current: [[UInt8]]) {
        let redactor = SecretRedactor(known: secrets == current ? current : secrets + current)
        if let call {
            entry.tool = SanitizedText(redactor.text(call.tool, limit: Self.toolLimit), limit: Self.toolLimit)
            entry.arguments = redactor.arguments(call.arguments)
        }
        switch result {
        case .text(let text, let bytes): entry.result = .init(text: redactor.text(text), bytes: bytes)
        case .object(let object):
            let text = JSON.object(redactor.arguments(object)).text
            entry.result = .init(text: text, bytes: text.utf8.count)
        case nil: break
        }
        (call, result) = (nil, nil)
    }
}

extension ActivityTexts.Excerpt {
    /// Nil for a result without texts.
    init?(_ result: Result<JSONObject, any Error>, secrets: [[UInt8]]) {
        switch result {
        case .success(let result):
            if let text = Self.text(of: result) {
                self = text
            } else if let content = result["structuredContent"]?.object {
                self = .object(content.bounded(secrets))
            } else {
                return nil
            }
        case .failure(is CancellationError): return nil
        case .failure(let error):
            let text = (error as? RPCError)?.message ?? (error as? AppError)?.code ?? "\(type(of: error))"
            self = .text(SecretRedactor.excerpt(of: text), bytes: text.utf8.count)
        }
    }

    private static func text(of result: JSONObject) -> Self? {
        var (beginning, size) = (String?.none, 0)
        for block in result["content"]?.array ?? [] {
            guard let text = block["text"]?.string ?? link(in: block) else { continue }
            size += text.utf8.count
            let excerpt = SecretRedactor.excerpt(of: text)
            guard let before = beginning else {
                beginning = excerpt
                continue
            }
            if before.utf8.count < SecretRedactor.limit { beginning = "\(before)\n\(excerpt)" }
        }
        return beginning.map { .text($0, bytes: size) }
    }

    private static func link(in block: JSON) -> String? {
        guard block["type"] == "resource_link", let uri = block["uri"]?.string else { return nil }
        return "[link to \(uri)]"
    }
}

extension JSONObject {
    /// The object, or its part without secrets if it is large.
    fileprivate func bounded(_ secrets: [[UInt8]]) -> JSONObject {
        SecretRedactor.isSmall(self) ? self : SecretRedactor(known: secrets).arguments(self)
    }
}
