import Model

/// The values that an Android phone's shell reports.
struct ADBPhone: Hashable, Sendable {
    /// The identity, from `ro.serialno`.
    let udid: UDID
    /// Tells apart two phones with one serial; nil if the shell may not read it.
    let bootID: String?
    /// The name that a person gave the phone, else the model. Nil until the phone was asked.
    var name: SanitizedText?
    let model: SanitizedText?
    let release: SanitizedText?

    /// The command whose output the initializer reads: one line for each value.
    ///
    /// All emulators of one version have the same `ro.serialno`, so the name of the virtual device is read too.
    static let command = """
        getprop ro.serialno;getprop ro.boot.serialno;getprop ro.boot.qemu.avd_name;getprop ro.kernel.qemu.avd_name;\
        getprop ro.product.model;getprop ro.build.version.release;cat /proc/sys/kernel/random/boot_id
        """
    /// The command whose output `setName` reads. It takes up to a second on a phone that is busy.
    static let nameCommand = "settings get global device_name"

    /// Reads the output of `command`. Returns nil without a serial.
    init?(output: String) {
        let lines = output.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        func value(_ index: Int) -> String? {
            guard lines.indices.contains(index) else { return nil }
            let text = lines[index].drop { $0.isWhitespace }
            return text.isEmpty ? nil : String(text)
        }
        guard let serial = value(0) ?? value(1) else { return nil }
        let virtual = (value(2) ?? value(3)).map { "-\($0)" } ?? ""
        guard let udid = UDID(androidSerial: serial + virtual) else { return nil }
        self.udid = udid
        bootID = value(6).flatMap { text in
            text.utf8.count == 36 && text.allSatisfy { $0.isHexDigit || $0 == "-" } ? text : nil
        }
        model = value(4).map { SanitizedText($0) }
        release = value(5).map { SanitizedText($0) }
    }

    /// Sets the name from the output of `nameCommand`; nil if the phone did not answer.
    mutating func setName(output: String?) {
        let text = output?.split(whereSeparator: \.isNewline).first ?? ""
        // The shell reports its errors in the output, such as "cmd: Can't find service: settings" while Android starts.
        let isError = ["cmd: ", "/system/", "Error", "Exception"].contains { text.hasPrefix($0) }
        let isName = !text.allSatisfy(\.isWhitespace) && text != "null" && !isError
        name = isName ? SanitizedText(text) : model
    }
}
