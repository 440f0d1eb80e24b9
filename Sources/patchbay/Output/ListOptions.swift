import ArgumentParser
import Model

/// The `--json` option of commands with output.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print JSON: one document, or one document per line for streams. The format is stable.")
    var json = false
}

/// The options of lists: `--json` and `--quiet`.
struct ListOptions: ParsableArguments {
    @Flag(help: "Print JSON: one document, or one document per line for streams. The format is stable.")
    var json = false
    @Flag(name: [.short, .long], help: "Print only the IDs, one per line.")
    var quiet = false

    func validate() throws {
        if json, quiet { throw ValidationError("--json and --quiet exclude each other.") }
    }

    /// Prints a list of the API: `items` with `--json`, the IDs with `--quiet`, else the table.
    func show<Item: ListItem>(
        _ items: [Item],
        id: (Item) -> String,
        table: Table,
        ifEmpty emptyMessage: String,
        footer: String? = nil,
        on options: GlobalOptions
    ) throws {
        try show(
            ListResponse(items),
            ids: items.map(id),
            table: table,
            ifEmpty: emptyMessage,
            footer: footer,
            on: options.output,
            hint: options.hint
        )
    }

    /// Prints a list in the format of the options.
    ///
    /// - Parameters:
    ///   - document: The output of `--json`.
    ///   - ids: The output of `--quiet`.
    ///   - table: The output without an option.
    ///   - emptyMessage: The output instead of a table without rows.
    ///   - footer: The line after a table with rows.
    ///   - output: Standard output.
    ///   - hint: The broker for the commands in the text.
    /// - Throws: `BrokenPipe`, `CLIError`.
    func show(
        _ document: some Encodable,
        ids: [String],
        table: Table,
        ifEmpty emptyMessage: String,
        footer: String? = nil,
        on output: Console,
        hint: BrokerHint = BrokerHint(broker: nil)
    ) throws {
        if json { return try output.document(document) }
        if quiet { return try output.ids(ids) }
        if table.rows.isEmpty { return try output.line(hint.completed(emptyMessage)) }
        try output.table(table)
        if let footer { try output.line(hint.completed(footer)) }
    }
}
