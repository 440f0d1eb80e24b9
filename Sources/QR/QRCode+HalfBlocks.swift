extension QRCode {
    /// The code and its frame in lines of half blocks, two rows of modules in each.
    ///
    /// - Parameter isColoured: Whether black on white may be asked for (ECMA-48 SGR), which is right on every terminal.
    ///   Without colours the light modules are drawn, as nearly every terminal writes light on dark.
    /// - Returns: The lines, from the top, without their ends.
    package func halfBlocks(isColoured: Bool) -> [String] {
        stride(from: 0, to: fullSize, by: 2).map { row in
            let line = (0..<fullSize).map { column in
                Self.block(
                    upper: isDark(column, row) == isColoured,
                    lower: isDark(column, row + 1) == isColoured
                )
            }
            // Black and white of the 256 colours: the first sixteen are whatever the theme makes of them.
            return isColoured ? "\u{1B}[38;5;16;48;5;231m\(String(line))\u{1B}[0m" : String(line)
        }
    }

    private static func block(upper: Bool, lower: Bool) -> Character {
        switch (upper, lower) {
        case (true, true): "█"
        case (true, false): "▀"
        case (false, true): "▄"
        case (false, false): " "
        }
    }
}
