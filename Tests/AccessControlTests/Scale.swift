import FoundationEssentials

/// How much of a long test to run: little by itself, all of it with `PATCHBAY_SOAK=1` (`make soak`).
enum Scale {
    static func pick(short: Int, soak: Int) -> Int {
        ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1" ? soak : short
    }
}
