import FoundationEssentials
import Glibc
import X509

/// The host names of this machine.
package enum MachineHostNames {
    /// Returns whether a text can be a name or an address in a certificate.
    package static func isValid(_ text: String) -> Bool { GeneralName(address: text) != nil }

    /// Returns the host name, in full if `/etc/hosts` has it, and the name that mDNS announces. It asks no server.
    package static func current() -> [String] {
        var buffer = [CChar](repeating: 0, count: Int(HOST_NAME_MAX) + 1)
        gethostname(&buffer, buffer.count - 1)
        let hosts = (try? String(contentsOf: URL(filePath: "/etc/hosts"), encoding: .utf8)) ?? ""
        let host = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return names(of: host, hosts: hosts)
    }

    static func names(of host: String, hosts: String) -> [String] {
        let label = host.split(separator: ".").first.map(String.init) ?? "localhost"
        let known = hosts.split(separator: "\n").flatMap { line in
            line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }.dropFirst().map(String.init)
        }
        let full = known.filter { $0.hasPrefix("\(label).") }
        return ([host, label] + full + ["\(label).local"]).filter(isValid).reduce(into: []) { names, name in
            if !names.contains(name) { names.append(name) }
        }
    }
}
