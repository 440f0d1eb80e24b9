import FoundationEssentials

/// The saved results of a run.
struct Record: Codable, Sendable {
    let date: Date
    let commandLine: [String]
    let machine: Machine
    var loadAtEnd: Double?
    var results: Results

    /// Writes the record and its table and returns their path without an extension.
    func save(in folder: String) throws -> String {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        encoder.dateEncodingStrategy = .iso8601
        let name = date.formatted(.iso8601).filter { $0.isLetter || $0.isNumber }
        let path = "\(folder)/\(name)"
        try encoder.encode(self).write(to: URL(filePath: "\(path).json"))
        try Data(markdown.utf8).write(to: URL(filePath: "\(path).md"))
        return path
    }

    /// The medians and ratios as Markdown.
    var markdown: String {
        let day = date.formatted(.iso8601.year().month().day())
        return tables(.medians) + "\nMeasured on \(day), \(machine.summary).\n"
    }

    func tables(_ detail: ResultTable.Detail) -> String {
        TestBed.Kind.allCases.compactMap { ResultTable(results, bed: $0, detail: detail)?.text }.joined(separator: "\n")
    }
}
