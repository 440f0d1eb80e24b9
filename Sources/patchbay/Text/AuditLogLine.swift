import FoundationEssentials
import Model

/// One line of the audit log, as much of it as a person reads.
struct AuditLogLine: Decodable {
    struct Event: Decodable {
        let action: String
        let who: AuditActor
        let invite: String?
        let grant: String?
        let ended: [String]?
        let endpoint: EndpointID?
        let detail: String?
        let isAlert: Bool?
    }

    let number: Int
    let wall: Date
    let event: Event

    /// `12  2026-11-21T14:30:00.000Z  revoked  grant 0a1b2c3d  by user 1000, …`.
    func text(isColoured: Bool) -> String {
        let style: ANSIStyle = event.isAlert == true ? .red : .bold
        let subjects = [
            event.invite.map { "invite \($0)" }, event.grant.map { "grant \($0)" }, event.endpoint.map(\.text),
        ].compactMap { $0 }
        var words = subjects + ["by \(Formatting.caller(event.who))"]
        let ended = (event.ended ?? []).filter { $0 != event.grant && $0 != event.invite }
        if !ended.isEmpty { words.append("with \(ended.joined(separator: ", "))") }
        if let detail = event.detail { words.append(detail) }
        let action = style.paint(SanitizedText(event.action).text, isOn: isColoured)
        let facts = words.map { SanitizedText($0, limit: .max).text }.joined(separator: "  ")
        return "\(number)  \(JSONCoding.text(of: wall))  \(action)  \(facts)"
    }
}
