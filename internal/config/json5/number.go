package json5

import "math/big"

// number parses every form of number that JSON5 has and writes it in the one
// form that JSON has.
func (p *parser) number() error {
	start := p.pos
	if p.accept('-') {
		p.copied(start, p.pos)
	} else {
		p.accept('+')
	}
	var err error
	switch r := p.next(); {
	case isIdentifierStart(r):
		return p.signedWord(start)
	case r == '0' && p.pos+1 < len(p.src) && (p.src[p.pos+1]|0x20) == 'x':
		err = p.hexadecimal()
	default:
		err = p.decimal()
	}
	if err != nil {
		return err
	}
	if r := p.next(); isDigit(r) || r == '\\' || isIdentifierStart(r) {
		return p.expected("the end of the number")
	}
	return nil
}

// signedWord explains -Infinity, and that a sign needs a number.
func (p *parser) signedWord(start int) error {
	from := p.pos
	for r, size := p.peek(); isIdentifierPart(r); r, size = p.peek() {
		p.pos += size
	}
	switch word := string(p.src[from:p.pos]); word {
	case "Infinity", "NaN":
		return p.errorAt(start, "%s is not a number that can be used here", p.src[start:p.pos])
	default:
		return p.errorAt(from, "expected digits after the sign, found %s", abbreviate(word))
	}
}

func (p *parser) hexadecimal() error {
	start := p.pos
	p.pos += len("0x")
	from := p.pos
	for isHexDigit(p.next()) {
		p.pos++
	}
	digits := p.src[from:p.pos]
	if len(digits) == 0 {
		return p.expected("hexadecimal digits after 0x")
	}
	if len(digits) > MaxHexDigits {
		return p.errorAt(start, "the number has more than %d hexadecimal digits", MaxHexDigits)
	}
	value, _ := new(big.Int).SetString(string(digits), 16)
	p.made(start, value.String())
	return nil
}

// decimal parses [digits][.[digits]][e[sign]digits] with a digit before the
// exponent; JSON wants digits on both sides of the point, so they are added or
// the point is left out.
func (p *parser) decimal() error {
	start := p.pos
	whole := p.digits()
	if whole > 1 && p.src[start] == '0' {
		return p.errorAt(start, "a number cannot start with 0 and another digit (octal is not allowed)")
	}
	if whole > 0 {
		p.copied(start, p.pos)
	}
	point := p.pos
	if p.accept('.') {
		fraction := p.digits()
		switch {
		case whole == 0 && fraction == 0:
			p.pos = point
			return p.expected("a number")
		case whole == 0:
			p.made(point, "0")
		}
		if fraction > 0 {
			p.copied(point, p.pos)
		}
	} else if whole == 0 {
		return p.expected("digits after the sign")
	}
	return p.exponent()
}

func (p *parser) exponent() error {
	start := p.pos
	if !p.accept('e') && !p.accept('E') {
		return nil
	}
	if !p.accept('+') {
		p.accept('-')
	}
	if p.digits() == 0 {
		return p.expected("the digits of the exponent")
	}
	p.copied(start, p.pos)
	return nil
}

// digits skips decimal digits and says how many there were.
func (p *parser) digits() int {
	start := p.pos
	for isDigit(p.next()) {
		p.pos++
	}
	return p.pos - start
}
