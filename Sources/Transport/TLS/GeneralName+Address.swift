import Glibc
import Model
import SwiftASN1
package import X509

extension GeneralName {
    /// Parses a host name or a numeric address; nil for any other text.
    package init?(address text: String) {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, text, &bytes) == 1 {
                self = .ipAddress(ASN1OctetString(contentBytes: bytes[...]))
                return
            }
        }
        // RFC 1123: letters, digits and hyphens between dots. A text such as "10.0.0.256" is not a name.
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        let isName = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
                && label.utf8.allSatisfy { Base62.contains($0) || $0 == UInt8(ascii: "-") }
        }
        let isNumeric = labels.last?.utf8.allSatisfy(\.isDigit) ?? true
        guard isName, !isNumeric || labels.count == 1, text.utf8.count <= 253 else { return nil }
        self = .dnsName(text)
    }
}
