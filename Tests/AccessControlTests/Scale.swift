import FoundationEssentials

/// Size of long tests: small by default, full with `PATCHBAY_SOAK=1` (`make soak`).
enum Scale {
    static func pick(short: Int, soak: Int) -> Int {
        ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1" ? soak : short
    }
}
